// B-PEARL's pairs to attention biases of all layers and heads: rows of (v, m) and (m, v) side by side, times a matrix.
//
// The result is by column first, [heads, dense pairs] for each layer: a head has its matrices of (v, m) together. Pairs that are
// padding are not computed. Several pairs may share a row; their gradients add up.

#include "tiles.h"

struct Pairs {  // layers/kernels/compiled_pairs.py has the same fields; all of them are 8 bytes
  Int groups, width, columns, heads, dense;             // width of a row; columns of the result, of a layer; dense pairs of all groups
  const Int *graphs, *padded; const Int* const* size;   // per group: graphs, the size they are padded to, the size of each
  const Int* const* start; const Int* row;              // per group: the first pair of each graph; [pairs] the row of each pair
  const void *rows, *weight, *constant;                 // [R, width], [2 width, columns], [columns] or null
  double padding;                                       // the result where m is padding; it is zero where v alone is
  void* const* layers;                                  // per layer [heads, dense], the result or its gradient
  const void* transposed;                               // the weight as [columns, 2 width]
  void *grad_rows, *grad_weight; double* grad_constant; // like rows, weight and constant, zero so far
};

namespace {

template <class T, int BYTES>
struct Projection : Tiles<T, BYTES> {
  using typename Tiles<T, BYTES>::V;
  using Tiles<T, BYTES>::L;
  using Tiles<T, BYTES>::load;
  using Tiles<T, BYTES>::store;
  using Tiles<T, BYTES>::product;
  using Tiles<T, BYTES>::outer;

  struct Graph {
    const Int* row;         // of its pairs
    Int n, padded, start;   // its size, that of its group, its first dense pair

    // Calls `visit` with the rows of (v, m) and of (m, v) for all m, v from first to last.
    template <class F>
    void each(Int first, Int last, F visit) const {
      for (Int v = first; v < last; ++v)
        for (Int m = 0; m < n; ++m) {
          visit(row[v * n + m]);
          visit(row[m * n + v]);
        }
    }
  };

  // Column c of the result or its gradient, from a dense pair on.
  static inline T* at(const Pairs& a, Int c, Int pair) { return (T*)a.layers[c / a.heads] + c % a.heads * a.dense + pair; }

  // Calls `block(graph, first, last)` for rows v = first to last of each graph, a few at a time, and `whole(graph)` for each.
  template <class Block, class Whole>
  static void each(const Pairs& a, Block block, Whole whole) {
    Int start = 0;
    for (Int g = 0; g < a.groups; ++g)
      for (Int b = 0; b < a.graphs[g]; ++b) {
        const Graph graph = {a.row + a.start[g][b], a.size[g][b], a.padded[g], start};
        const Int step = std::max<Int>(1, kBlock / std::max<Int>(graph.n, 1));
        for (Int v = 0; v < graph.n; v += step) block(graph, v, std::min(graph.n, v + step));
        whole(graph);
        start += graph.padded * graph.padded;
      }
  }

  // The rows of pairs (v, m), v from first to last, side by side with those of (m, v).
  static void gather(const Pairs& a, const Graph& graph, Int first, Int last, std::vector<T>& both) {
    const Int f = a.width;
    both.resize(std::max<size_t>(both.size(), (last - first) * graph.n * 2 * f));
    T* to = both.data();
    graph.each(first, last, [&](Int row) {
      const T* from = (const T*)a.rows + row * f;
      for (Int j = 0; j < f; j += L) store(to + j, load(from + j));
      to += f;
    });
  }

  static void forward(const Pairs& a) {
    const Int f2 = 2 * a.width, columns = a.columns;
    const T* constant = (const T*)a.constant;
    std::vector<T> both, made;
    each(
        a,
        [&](const Graph& graph, Int first, Int last) {
          const Int n = graph.n, rows = (last - first) * n;
          gather(a, graph, first, last, both);
          made.resize(std::max<size_t>(made.size(), rows * columns));
          product(rows, f2, columns, {both.data(), f2}, {(const T*)a.weight, columns}, {made.data(), columns});
          for (Int c = 0; c < columns; ++c)
            for (Int v = first; v < last; ++v) {
              const T *from = made.data() + (v - first) * n * columns + c, more = constant ? constant[c] : T(0);
              T* to = at(a, c, graph.start + v * graph.padded);
              for (Int m = 0; m < n; ++m) to[m] = from[m * columns] + more;
            }
        },
        [&](const Graph& graph) {
          for (Int c = 0; c < columns; ++c)
            for (Int v = 0; v < graph.padded; ++v) {
              T* to = at(a, c, graph.start + v * graph.padded);
              if (v >= graph.n) std::fill(to, to + graph.n, T(0));
              std::fill(to + graph.n, to + graph.padded, T(a.padding));
            }
        });
  }

  static void backward(const Pairs& a) {
    const Int f = a.width, columns = a.columns;
    std::vector<T> both, from_columns, back;
    each(
        a,
        [&](const Graph& graph, Int first, Int last) {
          const Int n = graph.n, rows = (last - first) * n;
          gather(a, graph, first, last, both);
          from_columns.resize(std::max<size_t>(from_columns.size(), rows * columns));
          back.resize(std::max<size_t>(back.size(), rows * 2 * f));
          for (Int c = 0; c < columns; ++c) {
            T sum = 0;
            for (Int v = first; v < last; ++v) {
              const T* g = at(a, c, graph.start + v * graph.padded);
              T* to = from_columns.data() + (v - first) * n * columns + c;
              for (Int m = 0; m < n; ++m) {
                to[m * columns] = g[m];
                sum += g[m];
              }
            }
            if (a.grad_constant) a.grad_constant[c] += sum;
          }
          outer(rows, 2 * f, columns, {both.data(), 2 * f}, {from_columns.data(), columns}, {(T*)a.grad_weight, columns});
          product(rows, columns, 2 * f, {from_columns.data(), columns}, {(const T*)a.transposed, 2 * f}, {back.data(), 2 * f});
          const T* from = back.data();
          graph.each(first, last, [&](Int row) {
            T* to = (T*)a.grad_rows + row * f;
            for (Int j = 0; j < f; j += L) store(to + j, load(to + j) + load(from + j));
            from += f;
          });
        },
        [](const Graph&) {});
  }
};

[[maybe_unused]] bool fits(const Pairs& a, Int lanes) { return a.width % lanes == 0 && a.columns % lanes == 0; }

}  // namespace

EXPORT(pairs, Pairs, Projection)
