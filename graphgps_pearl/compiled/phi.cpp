// Layers of Phi with batch norm and ReLU: the mathematics of blocked.py in fewer passes over the rows.
//
// native.py fills a Phi and calls one of the functions at the end. Rows go through in blocks that stay in the first cache.
// h_0 (the sum over neighbours), h_k and e_k live in a block's buffers alone; z_k and the layers' outputs are stored for the
// backward pass. Widths are multiples of a vector, apart from that of the input where no gradient goes to it.
//
// Neighbours are in one segment of the rows, a graph's, which stays in the second cache: a segment's output of one layer is made,
// and summed over neighbours for the next, before the segment after it; so are the gradients on their way back.
//
// In evaluation norms are affine maps with the running statistics, and nothing needs all rows: a block goes through all linear maps
// of a layer, a segment through all layers, and only the output of the last one is stored.
//
// Sums over a block are in the rows' precision, sums over blocks in double. Moments are taken about the mean of the first
// block, and again about the mean that came out where that is far from it.

#include <memory>
#include <type_traits>

#include "tiles.h"

struct Layer {  // native.py has the same fields; all of them are 8 bytes
  Int rows, rows_before, samples, steps, skip, input_gradient;
  const Int* widths;                                                              // [steps + 1]
  const void* x;                                                                  // [rows_before, widths[0]]
  const Int *crow, *col; const void* value;                                       // A; crow is null where there is no sum over neighbours
  const Int *t_crow, *t_col; const void* t_value;                                 // its transpose
  const Int *node, *first;                                                        // see Matrix; null: `samples` rows a node
  const Int* parent;                                                              // [rows] each row's own row before; null: the same
  const Int* segments; Int num_segments;                                          // [num_segments + 1] bounds in the rows
  const void* weight;                                                             // [rows] multiplicities; null: one each
  double self, total;                                                             // 1 + epsilon; sum of the multiplicities
  const double *norm_eps, *momentum;                                              // [steps]
  void *const *running_mean, *const *running_var;                                 // per step
  const void *const *weights, *const *gamma, *const *beta;                        // per step, weights [out, in]
  void* const* z; void* stats; void* out;                                         // stats: mean, scale, 1/std of each step
  const void* grad; void* const* g; void* const* grad_weights; double* sums;      // g[k]: [rows, widths[k]], g[0] of a segment; sums: of g, of g z_hat
  void* grad_x; double* grad_self;
};

struct Phi {
  Int num_layers;
  const Layer* layers;  // each one's x is the output of the one before
};

namespace {

constexpr double kFar = 16;

template <class T, int BYTES>
struct Kernel : Tiles<T, BYTES> {
  using typename Tiles<T, BYTES>::V;
  using typename Tiles<T, BYTES>::Moments;
  using Tiles<T, BYTES>::L;
  using Tiles<T, BYTES>::load;
  using Tiles<T, BYTES>::store;
  using Tiles<T, BYTES>::product;
  using Tiles<T, BYTES>::outer;

  // Entries (v, u) of nodes; each node has a segment of consecutive rows, and row m of v meets row m of u.
  struct Matrix {
    const Int *crow, *col;
    const T* value;
    Int samples;               // rows of every node, or
    const Int *node, *first;   // the node of each row, and the first row of each node

    Int node_of(Int row) const { return node ? node[row] : samples == 1 ? row : row / samples; }
    Int first_of(Int v) const { return first ? first[v] : v * samples; }
  };

  template <int NV>
  static inline void sum_columns(const Matrix& m, Int v, Int shift, T self, const T* own, const T* x, T* to, Int f) {
    V sum[NV];
    for (int j = 0; j < NV; ++j) sum[j] = own ? self * load(own + j * L) : V{};
    for (Int k = m.crow[v]; k < m.crow[v + 1]; ++k) {
      const T* from = x + m.first_of(m.col[k]) * f + shift;
      const T value = m.value[k];
      for (int j = 0; j < NV; ++j) sum[j] += value * load(from + j * L);
    }
    for (int j = 0; j < NV; ++j) store(to + j * L, sum[j]);
  }

  // Rows r to r + n of M x, plus self times each row's own unless `own` is false.
  static void neighbours(const Matrix& m, Int r, Int n, Int f, const T* x, bool own, T self, const Int* parent, T* out) {
    for (Int i = r; i < r + n;) {
      const Int v = m.node_of(i), first = m.first_of(v), end = std::min(r + n, m.first_of(v + 1));
      const T* mine = own ? x + (parent ? parent[i] : i) * f : nullptr;
      const Int size = (end - i) * f, shift = (i - first) * f;
      T* to = out + (i - r) * f;
      Int j = 0;
      for (; j + 4 * L <= size; j += 4 * L) sum_columns<4>(m, v, shift + j, self, mine ? mine + j : mine, x, to + j, f);
      if (j + 2 * L <= size) { sum_columns<2>(m, v, shift + j, self, mine ? mine + j : mine, x, to + j, f); j += 2 * L; }
      if (j < size) sum_columns<1>(m, v, shift + j, self, mine ? mine + j : mine, x, to + j, f);
      i = end;
    }
  }

  struct Norm { const T *z, *mean, *scale, *invstd, *beta; };

  static Norm norm_of(const Layer& a, Int k) {
    const T* stats = (const T*)a.stats;
    for (Int i = 0; i < k; ++i) stats += 3 * a.widths[i + 1];
    const Int f = a.widths[k + 1];
    return {(const T*)a.z[k], stats, stats + f, stats + 2 * f, (const T*)a.beta[k]};
  }

  // Calls `function` with a number of vectors, as a type, and the first column of each chunk of the columns.
  template <class F>
  static inline void by_chunk(Int f, F function) {
    Int j = 0;
    for (; j + 2 * L <= f; j += 2 * L) function(std::integral_constant<int, 2>(), j);
    if (j < f) function(std::integral_constant<int, 1>(), j);
  }

  template <int NV>
  static inline void fetch(const T* p, V* to) {
    for (int c = 0; c < NV; ++c) to[c] = load(p + c * L);
  }

  // h = max(0, (z - mean) scale + beta).
  static void activate(const Norm& norm, Int r, Int n, Int f, T* h) {
    by_chunk(f, [&](auto nv, Int j) {
      constexpr int NV = decltype(nv)::value;
      V mean[NV], scale[NV], beta[NV];
      fetch<NV>(norm.mean + j, mean), fetch<NV>(norm.scale + j, scale), fetch<NV>(norm.beta + j, beta);
      const V zero = {};
      for (Int i = 0; i < n; ++i) {
        const T* z = norm.z + (r + i) * f + j;
        for (int c = 0; c < NV; ++c) {
          V y = (load(z + c * L) - mean[c]) * scale[c] + beta[c];
          store(h + i * f + j + c * L, y < zero ? zero : y);  // NaN stays
        }
      }
    });
  }

  static Matrix matrix(const Layer& a) { return {a.crow, a.col, (const T*)a.value, a.samples, a.node, a.first}; }
  static Matrix transpose(const Layer& a) { return {a.t_crow, a.t_col, (const T*)a.t_value, a.samples, a.node, a.first}; }

  // The rows of the block at r that step k multiplies: as stored, or made in the buffer.
  static const T* input(const Layer& a, Int k, Int r, Int n, T* buffer) {
    const Int f = a.widths[k];
    if (k) activate(norm_of(a, k - 1), r, n, f, buffer);
    else if (!a.crow) return (const T*)a.x + r * f;
    else neighbours(matrix(a), r, n, f, (const T*)a.x, true, T(a.self), a.parent, buffer);
    return buffer;
  }

  // Calls `function(r, n)` for the blocks of rows from `start` to `stop`.
  template <class F>
  static inline void by_block(Int start, Int stop, F function) {
    for (Int r = start; r < stop; r += kBlock) function(r, std::min(kBlock, stop - r));
  }

  // z_k of all rows, and its moments about the pivot, [2, f]; the pivot is the mean of the first block. Where the layer before is
  // given, its output is made first, segment by segment.
  static void multiply(const Layer& a, Int k, const Layer* before, T* pivot, double* sums) {
    const Int in = a.widths[k], f = a.widths[k + 1];
    const T *weights = (const T*)a.weights[k], *weight = (const T*)a.weight;
    T* z = (T*)a.z[k];
    std::vector<T> buffer(kBlock * in), transposed(in * f), block(2 * f);
    for (Int i = 0; i < in; ++i)
      for (Int j = 0; j < f; ++j) transposed[i * f + j] = weights[j * in + i];
    const auto multiply_block = [&](Int r, Int n) {
      const T* h = input(a, k, r, n, buffer.data());
      if (r == 0) {
        product(n, in, f, {h, in}, {transposed.data(), f}, {z, f});
        for (Int j = 0; j < f; ++j) {
          double sum = 0;
          for (Int i = 0; i < n; ++i) sum += z[i * f + j];
          pivot[j] = T(sum / n);
        }
      }
      std::fill(block.begin(), block.end(), T(0));
      const Moments moments = {pivot, weight ? weight + r : nullptr, block.data(), f};
      product(n, in, f, {h, in}, {transposed.data(), f}, {z + r * f, f}, &moments);
      for (Int j = 0; j < 2 * f; ++j) sums[j] += block[j];
    };
    if (k || !before) return by_block(0, a.rows, multiply_block);
    if (a.parent) finish(*before, 0, before->rows);
    for (Int s = 0; s < a.num_segments; ++s) {
      if (!a.parent) finish(*before, a.segments[s], a.segments[s + 1]);
      by_block(a.segments[s], a.segments[s + 1], multiply_block);
    }
  }

  // The moments of z again, about another pivot.
  static void centre(const Layer& a, Int k, const T* pivot, double* sums) {
    const Int f = a.widths[k + 1];
    const T *z = (const T*)a.z[k], *weight = (const T*)a.weight;
    std::fill(sums, sums + 2 * f, 0.0);
    for (Int i = 0; i < a.rows; ++i)
      for (Int j = 0; j < f; ++j) {
        const double d = double(z[i * f + j]) - double(pivot[j]), w = weight ? weight[i] : 1.0;
        sums[j] += w * d;
        sums[f + j] += w * d * d;
      }
  }

  static void forward_step(const Layer& a, Int k, const Layer* before) {
    const Int f = a.widths[k + 1];
    std::vector<double> mean(f), var(f);
    const Norm norm = norm_of(a, k);
    T *stored = (T*)norm.mean, *scale = (T*)norm.scale, *invstd = (T*)norm.invstd;
    std::vector<T> pivot(f);
    std::vector<double> sums(2 * f, 0.0);
    multiply(a, k, before, pivot.data(), sums.data());
    for (int again = 0; again < 2; ++again) {
      bool far = false;
      for (Int j = 0; j < f; ++j) {
        const double d = sums[j] / a.total;
        var[j] = std::max(sums[f + j] / a.total - d * d, 0.0);
        mean[j] = double(pivot[j]) + d;
        far = far || d * d > kFar * var[j];
      }
      if (!far || again) break;
      for (Int j = 0; j < f; ++j) pivot[j] = T(mean[j]);
      centre(a, k, pivot.data(), sums.data());
    }
    for (Int j = 0; j < f; ++j) {
      const double inv = 1 / std::sqrt(var[j] + a.norm_eps[k]);
      stored[j] = T(mean[j]);
      invstd[j] = T(inv);
      scale[j] = T(((const T*)a.gamma[k])[j] * inv);
    }
    T *running_mean = (T*)a.running_mean[k], *running_var = (T*)a.running_var[k];
    for (Int j = 0; j < f; ++j) {
      running_mean[j] += T(a.momentum[k]) * (T(mean[j]) - running_mean[j]);
      if (a.total > 1) running_var[j] += T(a.momentum[k]) * (T(var[j] * (a.total / (a.total - 1))) - running_var[j]);
    }
  }

  // The layer's output, of the rows from start to stop.
  static void finish(const Layer& a, Int start, Int stop) {
    const Int f = a.widths[a.steps];
    const Norm last = norm_of(a, a.steps - 1);
    T* out = (T*)a.out;
    by_block(start, stop, [&](Int r, Int n) {
      activate(last, r, n, f, out + r * f);
      if (!a.skip) return;
      for (Int i = r; i < r + n; ++i) {
        const T* own = (const T*)a.x + (a.parent ? a.parent[i] : i) * f;
        for (Int j = 0; j < f; j += L) store(out + i * f + j, load(out + i * f + j) + load(own + j));
      }
    });
  }

  static void forward(const Phi& phi) {
    for (Int l = 0; l < phi.num_layers; ++l)
      for (Int k = 0; k < phi.layers[l].steps; ++k) forward_step(phi.layers[l], k, l ? &phi.layers[l - 1] : nullptr);
    const Layer& last = phi.layers[phi.num_layers - 1];
    finish(last, 0, last.rows);
  }

  // A linear map and its norm in evaluation, in one: weights [in, out].
  struct Map { std::vector<T> weights, shift; };

  static std::vector<Map> maps_of(const Layer& a) {
    std::vector<Map> maps(a.steps);
    for (Int k = 0; k < a.steps; ++k) {
      const Int in = a.widths[k], f = a.widths[k + 1];
      const auto of = [&](const void* const* parameters, Int j) { return double(((const T*)parameters[k])[j]); };
      maps[k] = {std::vector<T>(in * f), std::vector<T>(f)};
      for (Int j = 0; j < f; ++j) {
        const double scale = of(a.gamma, j) / std::sqrt(of(a.running_var, j) + a.norm_eps[k]);
        maps[k].shift[j] = T(of(a.beta, j) - of(a.running_mean, j) * scale);
        for (Int i = 0; i < in; ++i) maps[k].weights[i * f + j] = T(of(a.weights, j * in + i) * scale);
      }
    }
    return maps;
  }

  // to = max(0, to + shift), plus each row's own where `own` is given.
  static void add_and_cut(Int n, Int f, const T* shift, const T* own, const Int* parent, T* to) {
    const V zero = {};
    for (Int i = 0; i < n; ++i)
      for (Int j = 0; j < f; j += L) {
        const V y = load(to + i * f + j) + load(shift + j), cut = y < zero ? zero : y;  // NaN stays
        store(to + i * f + j, own ? cut + load(own + (parent ? parent[i] : i) * f + j) : cut);
      }
  }

  // Rows start to stop of a layer's output, of those of x.
  static void evaluate_rows(const Layer& a, const std::vector<Map>& maps, const T* x, Int start, Int stop, T* out) {
    const Int widest = *std::max_element(a.widths, a.widths + a.steps + 1);
    std::vector<T> buffers[2] = {std::vector<T>(kBlock * widest), std::vector<T>(kBlock * widest)};
    by_block(start, stop, [&](Int r, Int n) {
      const T* h = x + r * a.widths[0];
      if (a.crow) {
        neighbours(matrix(a), r, n, a.widths[0], x, true, T(a.self), a.parent, buffers[1].data());
        h = buffers[1].data();
      }
      for (Int k = 0; k < a.steps; ++k) {
        const Int in = a.widths[k], f = a.widths[k + 1];
        const bool last = k == a.steps - 1, skip = last && a.skip;
        T* to = last ? out + r * f : buffers[k % 2].data();
        product(n, in, f, {h, in}, {maps[k].weights.data(), f}, {to, f});
        const T* own = skip ? x + (a.parent ? 0 : r * f) : nullptr;
        add_and_cut(n, f, maps[k].shift.data(), own, a.parent ? a.parent + r : nullptr, to);
        h = to;
      }
    });
  }

  // The last layer's output with running statistics. Rows of merged pairs are one segment.
  static void evaluate(const Phi& phi) {
    std::vector<std::vector<Map>> maps;
    Int most[2] = {0, 0};  // numbers of a segment's output, in layers with an even and an odd number
    for (Int l = 0; l < phi.num_layers; ++l) {
      const Layer& a = phi.layers[l];
      maps.push_back(maps_of(a));
      if (l == phi.num_layers - 1) break;
      for (Int s = 0; s < a.num_segments; ++s)
        most[l % 2] = std::max(most[l % 2], (a.segments[s + 1] - a.segments[s]) * a.widths[a.steps]);
    }
    const std::unique_ptr<T[]> outputs[2] = {std::unique_ptr<T[]>(new T[most[0]]), std::unique_ptr<T[]>(new T[most[1]])};
    for (Int s = 0; s < phi.layers[0].num_segments; ++s) {
      const T* x = (const T*)phi.layers[0].x;
      for (Int l = 0; l < phi.num_layers; ++l) {
        const Layer& a = phi.layers[l];
        const Int start = a.segments[s], stop = a.segments[s + 1];
        T* out = l == phi.num_layers - 1 ? (T*)a.out : outputs[l % 2].get() - start * a.widths[a.steps];
        evaluate_rows(a, maps[l], x, start, stop, out);
        x = out;
      }
    }
  }

  // Sums of g and of g z_hat over a block, g set to zero where the activation is; stored unless it is the layer's gradient.
  template <bool STORE>
  static void cut(const Norm& norm, Int r, Int n, Int f, T* g, double* sums) {
    by_chunk(f, [&](auto nv, Int j) {
      constexpr int NV = decltype(nv)::value;
      V mean[NV], scale[NV], beta[NV], first[NV] = {}, second[NV] = {};
      fetch<NV>(norm.mean + j, mean), fetch<NV>(norm.scale + j, scale), fetch<NV>(norm.beta + j, beta);
      const V zero = {};
      for (Int i = 0; i < n; ++i) {
        const T* z = norm.z + (r + i) * f + j;
        T* at = g + i * f + j;
        for (int c = 0; c < NV; ++c) {
          const V d = load(z + c * L) - mean[c], v = load(at + c * L);
          const V kept = d * scale[c] + beta[c] <= zero ? zero : v;
          if (STORE) store(at + c * L, kept);
          first[c] += kept;
          second[c] += kept * d;
        }
      }
      for (int c = 0; c < NV; ++c)
        for (int l = 0; l < L; ++l) {
          const Int column = j + c * L + l;
          sums[column] += first[c][l];
          sums[f + column] += double(second[c][l]) * norm.invstd[column];
        }
    });
  }

  // A block of e_k = g_k - w (at_mean + slope (z_k - mean)); `uncut`: g is the layer's gradient, not yet cut.
  static void correct(const Norm& norm, const T* weight, const T* at_mean, const T* slope, Int r, Int n, Int f, const T* g, bool uncut, T* e) {
    by_chunk(f, [&](auto nv, Int j) {
      constexpr int NV = decltype(nv)::value;
      V mean[NV], scale[NV], beta[NV], a0[NV], a1[NV];
      fetch<NV>(norm.mean + j, mean), fetch<NV>(norm.scale + j, scale), fetch<NV>(norm.beta + j, beta);
      fetch<NV>(at_mean + j, a0), fetch<NV>(slope + j, a1);
      const V zero = {};
      for (Int i = 0; i < n; ++i) {
        const T *z = norm.z + (r + i) * f + j, *from = g + i * f + j;
        for (int c = 0; c < NV; ++c) {
          const V d = load(z + c * L) - mean[c];
          V v = load(from + c * L), more = a0[c] + a1[c] * d;
          if (uncut) v = d * scale[c] + beta[c] <= zero ? zero : v;
          if (weight) more *= weight[r + i];
          store(e + i * f + j + c * L, v - more);
        }
      }
    });
  }

  // The sums of each step.
  static std::vector<double*> sums_of(const Layer& a) {
    std::vector<double*> sums(a.steps);
    double* next = a.sums;
    for (Int k = 0; k < a.steps; ++k) {
      sums[k] = next;
      next += 2 * a.widths[k + 1];
    }
    return sums;
  }

  // Sums of the layer's gradient behind its last norm, of the rows from start to stop.
  static void cut_output(const Layer& a, Int start, Int stop) {
    const Int f = a.widths[a.steps];
    const Norm last = norm_of(a, a.steps - 1);
    double* sums = sums_of(a)[a.steps - 1];
    by_block(start, stop, [&](Int r, Int n) { cut<false>(last, r, n, f, (T*)a.grad + r * f, sums); });
  }

  // From g_{k+1} to g_k and its sums, and the gradient of the weights; from g_0 on to the layer before, segment by segment.
  static void backward_step(const Layer& a, Int k, const double* sums, double* sums_before, const Layer* layer_before) {
    const Int in = a.widths[k], f = a.widths[k + 1];
    const Norm norm = norm_of(a, k), before = k ? norm_of(a, k - 1) : norm;
    const T* weights = (const T*)a.weights[k];
    const bool last = k == a.steps - 1, wanted = k || a.input_gradient;
    std::vector<T> at_mean(f), slope(f), scaled(f * in), total(in * f, T(0)), e(kBlock * f), buffer(kBlock * in);
    for (Int j = 0; j < f; ++j) {
      at_mean[j] = T(sums[j] / a.total);
      slope[j] = T(sums[f + j] / a.total * norm.invstd[j]);
      for (Int i = 0; i < in; ++i) scaled[j * in + i] = weights[j * in + i] * norm.scale[j];
    }
    const auto block = [&](Int r, Int n, Int origin) {
      const T* g = (const T*)(last ? a.grad : a.g[k + 1]) + r * f;
      correct(norm, (const T*)a.weight, at_mean.data(), slope.data(), r, n, f, g, last, e.data());
      outer(n, in, f, {input(a, k, r, n, buffer.data()), in}, {e.data(), f}, {total.data(), f});
      if (!wanted) return;
      T* g_before = (T*)a.g[k] + (r - origin) * in;
      product(n, f, in, {e.data(), f}, {scaled.data(), in}, {g_before, in});
      if (k) cut<true>(before, r, n, in, g_before, sums_before);
    };
    if (k || !a.crow) by_block(0, a.rows, [&](Int r, Int n) { block(r, n, 0); });
    else
      for (Int s = 0; s < a.num_segments; ++s) {
        const Int start = a.segments[s], stop = a.segments[s + 1];
        by_block(start, stop, [&](Int r, Int n) { block(r, n, start); });
        to_neighbours(a, start, stop);
        if (layer_before) a.parent ? cut_output(*layer_before, 0, a.rows_before) : cut_output(*layer_before, start, stop);
      }
    T* grad_weights = (T*)a.grad_weights[k];
    for (Int j = 0; j < f; ++j)
      for (Int i = 0; i < in; ++i) grad_weights[j * in + i] = total[i * f + j] * norm.scale[j];
  }

  // The gradients of x and of 1 + epsilon from g_0 of a segment and, where x was added to the output, from the output's gradient.
  static void to_neighbours(const Layer& a, Int start, Int stop) {
    const Int f = a.widths[0];
    const T *g = (const T*)a.g[0] - start * f, *x = (const T*)a.x, *grad = (const T*)a.grad;
    T* grad_x = (T*)a.grad_x;
    double self = 0;
    std::vector<T> sum_of_neighbours(kBlock * f);
    if (a.parent) neighbours(transpose(a), 0, a.rows_before, f, g, false, T(0), nullptr, grad_x);
    by_block(start, stop, [&](Int r, Int n) {
      V sum = {};
      T* made = sum_of_neighbours.data() - r * f;  // grad_x may be the same memory as grad
      if (!a.parent) neighbours(transpose(a), r, n, f, g, true, T(a.self), nullptr, made + r * f);
      for (Int i = r; i < r + n; ++i) {
        const Int own = (a.parent ? a.parent[i] : i) * f;
        const T* from = a.parent ? grad_x : made;
        for (Int j = 0; j < f; j += L) {
          V v = load(g + i * f + j), to = load(from + own + j);
          sum += v * load(x + own + j);
          if (a.parent) to += T(a.self) * v;
          if (a.skip) to += load(grad + i * f + j);
          store(grad_x + own + j, to);
        }
      }
      for (int l = 0; l < L; ++l) self += sum[l];
    });
    *a.grad_self += self;
  }

  static void backward(const Phi& phi) {
    cut_output(phi.layers[phi.num_layers - 1], 0, phi.layers[phi.num_layers - 1].rows);
    for (Int l = phi.num_layers - 1; l >= 0; --l) {
      const Layer& a = phi.layers[l];
      const auto sums = sums_of(a);
      for (Int k = a.steps - 1; k >= 0; --k)
        backward_step(a, k, sums[k], k ? sums[k - 1] : nullptr, l ? &phi.layers[l - 1] : nullptr);
    }
  }
};

[[maybe_unused]] bool fits(const Layer& a, Int lanes) {
  bool divides = !a.input_gradient || a.widths[0] % lanes == 0;
  for (Int k = 1; k <= a.steps; ++k) divides = divides && a.widths[k] % lanes == 0;
  return divides;
}

[[maybe_unused]] bool fits(const Phi& phi, Int lanes) {
  bool all = true;
  for (Int l = 0; l < phi.num_layers; ++l) all = all && fits(phi.layers[l], lanes);
  return all;
}

}  // namespace

EXPORT(phi, Phi, Kernel)

extern "C" {
int phi_evaluate_float32(const Phi* a) { return guarded([&] { CALL(Kernel, evaluate, float); }); }
int phi_evaluate_float64(const Phi* a) { return guarded([&] { CALL(Kernel, evaluate, double); }); }
}
