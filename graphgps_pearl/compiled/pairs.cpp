// B-PEARL's pairs to attention biases of all layers and heads: rows of (v, m) and (m, v) side by side, times a matrix.
//
// The result is by column first, [heads, dense pairs] for each layer: a head has its matrices of (v, m) together. Pairs that are
// padding are not computed. Several pairs may share a row; their gradients add up.

#include "tiles.h"

struct Pairs {  // layers/kernels/compiled_pairs.py has the same fields; all of them are 8 bytes
  Int groups, width, columns, heads, dense;             // width of a row; columns of the result, of a layer; dense pairs of all groups
  const Int *graphs, *padded; const Int* const* size;   // per group: graphs, the size they are padded to, the size of each
  const Int* row;                                       // [dense, 2] the rows of (v, m) and (m, v)
  const void *rows, *weight, *constant;                 // [R, width], [2 width, columns], [columns] or null
  const void* padding;                                  // [dense] the result where there is no pair
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

  // Column c of the result or its gradient, from a dense pair on.
  static inline T* at(const Pairs& a, Int c, Int pair) { return (T*)a.layers[c / a.heads] + c % a.heads * a.dense + pair; }

  // Calls `block(start, n, padded, first, last)` for rows v = first to last of each graph, a few at a time, and
  // `graph(start, n, padded)` for each; `start` is the graph's first dense pair.
  template <class Block, class Graph>
  static void each(const Pairs& a, Block block, Graph graph) {
    Int start = 0;
    for (Int g = 0; g < a.groups; ++g)
      for (Int b = 0; b < a.graphs[g]; ++b) {
        const Int n = a.size[g][b], padded = a.padded[g], step = std::max<Int>(1, kBlock / std::max<Int>(n, 1));
        for (Int v = 0; v < n; v += step) block(start, n, padded, v, std::min(n, v + step));
        graph(start, n, padded);
        start += padded * padded;
      }
  }

  // The rows of pairs (v, m), v from first to last, side by side with those of (m, v).
  static void gather(const Pairs& a, Int start, Int n, Int padded, Int first, Int last, std::vector<T>& both) {
    const Int f = a.width;
    both.resize(std::max<size_t>(both.size(), (last - first) * n * 2 * f));
    T* to = both.data();
    for (Int v = first; v < last; ++v)
      for (Int m = 0; m < n; ++m)
        for (int side = 0; side < 2; ++side, to += f) {
          const T* from = (const T*)a.rows + a.row[2 * (start + v * padded + m) + side] * f;
          for (Int j = 0; j < f; j += L) store(to + j, load(from + j));
        }
  }

  static void forward(const Pairs& a) {
    const Int f2 = 2 * a.width, columns = a.columns;
    const T* constant = (const T*)a.constant;
    std::vector<T> both, made;
    each(
        a,
        [&](Int start, Int n, Int padded, Int first, Int last) {
          const Int rows = (last - first) * n;
          gather(a, start, n, padded, first, last, both);
          made.resize(std::max<size_t>(made.size(), rows * columns));
          product(rows, f2, columns, {both.data(), f2}, {(const T*)a.weight, columns}, {made.data(), columns});
          for (Int c = 0; c < columns; ++c)
            for (Int v = first; v < last; ++v) {
              const T *from = made.data() + (v - first) * n * columns + c, more = constant ? constant[c] : T(0);
              T* to = at(a, c, start + v * padded);
              for (Int m = 0; m < n; ++m) to[m] = from[m * columns] + more;
            }
        },
        [&](Int start, Int n, Int padded) {
          for (Int c = 0; c < columns; ++c)
            for (Int v = 0; v < padded; ++v) {
              const Int first = start + v * padded + (v < n ? n : 0), last = start + (v + 1) * padded;
              std::memcpy(at(a, c, first), (const T*)a.padding + first, (last - first) * sizeof(T));
            }
        });
  }

  static void backward(const Pairs& a) {
    const Int f = a.width, columns = a.columns;
    std::vector<T> both, from_columns, back;
    each(
        a,
        [&](Int start, Int n, Int padded, Int first, Int last) {
          const Int rows = (last - first) * n;
          gather(a, start, n, padded, first, last, both);
          from_columns.resize(std::max<size_t>(from_columns.size(), rows * columns));
          back.resize(std::max<size_t>(back.size(), rows * 2 * f));
          for (Int c = 0; c < columns; ++c) {
            T sum = 0;
            for (Int v = first; v < last; ++v) {
              const T* g = at(a, c, start + v * padded);
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
          for (Int v = first; v < last; ++v)
            for (Int m = 0; m < n; ++m)
              for (int side = 0; side < 2; ++side, from += f) {
                T* to = (T*)a.grad_rows + a.row[2 * (start + v * padded + m) + side] * f;
                for (Int j = 0; j < f; j += L) store(to + j, load(to + j) + load(from + j));
              }
        },
        [](Int, Int, Int) {});
  }
};

[[maybe_unused]] bool fits(const Pairs& a, Int lanes) { return a.width % lanes == 0 && a.columns % lanes == 0; }

}  // namespace

EXPORT(pairs, Pairs, Projection)
