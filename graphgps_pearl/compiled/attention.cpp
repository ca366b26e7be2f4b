// Softmax attention with dropout inside each graph, from packed nodes to packed nodes; nothing is padded.
//
// Saved for the backward pass is the softmax, negative where an entry is dropped: [n, m] for each graph and head, m the
// graph's n rounded up to whole vectors. The bias may be the same for all heads or queries (a stride of zero).

#include <limits>

#include "tiles.h"

struct Attention {  // layers/kernels/compiled.py has the same fields; all of them are 8 bytes
  Int groups, heads, dim, dropped;                       // dropped: entries whose 16 bits, as a signed number, are below this
  double scale, share;                                   // of the logits; of the entries that stay
  const Int *graphs, *padded;                            // [groups] graphs of each group, and the size they are padded to
  const Int *const *first, *const *size;                 // per group and graph: its first node, its nodes
  const int16_t* const* bits;                            // per group [graphs, heads, padded, padded], and a vector more
  const void* const* bias;                               // per group or null
  const Int* strides;                                    // per group, of bias or grad_bias by (graph, head, query)
  const void* qkv; void* weights; void* out;             // [N, 3 dim]; saved; [N, dim]
  const void* grad; void* grad_qkv;
  void* const* grad_bias;                                // per group, zero so far, or null
};

namespace {

template <class T, int BYTES>
struct Heads : Tiles<T, BYTES> {
  using typename Tiles<T, BYTES>::V;
  using Tiles<T, BYTES>::L;
  using Tiles<T, BYTES>::load;
  using Tiles<T, BYTES>::store;
  using Tiles<T, BYTES>::product;
  using Tiles<T, BYTES>::sum_of;
  using Tiles<T, BYTES>::largest_of;
  typedef Tiles<T, BYTES> Tile;
  typedef std::vector<T> Buffer;
  typedef int16_t Bits __attribute__((vector_size(BYTES / sizeof(T) * sizeof(int16_t)), aligned(sizeof(int16_t)), may_alias));
  typedef std::conditional_t<sizeof(T) == 8, int64_t, int32_t> Integer;
  typedef Integer Whole __attribute__((vector_size(BYTES)));

  // e^x for x <= 0, in float by 2^n e^r with |r| <= ln 2 / 2; zero below the normal numbers.
  static inline V exponential(V x) {
    if constexpr (sizeof(T) == 8) {
      for (int l = 0; l < L; ++l) x[l] = std::exp(x[l]);
      return x;
    } else {
      const V least = V{} - 87.3f, clipped = x < least ? least : x;
      const Whole n = __builtin_convertvector(clipped * 1.44269504f - 0.5f, Whole);
      const V whole = __builtin_convertvector(n, V);
      const V r = (clipped - whole * 0.693359375f) + whole * 2.12194440e-4f;  // ln 2 in two parts
      V y = r * (1.0f / 5040) + 1.0f / 720;
      y = y * r + 1.0f / 120;
      y = y * r + 1.0f / 24;
      y = y * r + 1.0f / 6;
      y = y * r + 0.5f;
      y = y * r + 1.0f;
      y = y * r + 1.0f;
      y *= (V)((n + 127) << 23);
      return x < least ? V{} : y;
    }
  }

  static inline V tail(const T* p, Int count) {
    T values[L];
    for (int l = 0; l < L; ++l) values[l] = l < count ? p[l] : 0;
    return load(values);
  }

  // [n, d] rows to [d, m] columns, times a factor, zero beyond n.
  static void transpose(Int n, Int d, Int m, const T* x, Int ld, T factor, T* out) {
    for (Int k = 0; k < d; ++k) {
      for (Int i = 0; i < n; ++i) out[k * m + i] = factor * x[i * ld + k];
      for (Int i = n; i < m; ++i) out[k * m + i] = 0;
    }
  }

  static Int rounded(Int n) { return (n + L - 1) / L * L; }

  // One row of logits to the softmax, with the sign of dropped entries.
  static void softmax(Int n, Int m, T* s, const T* bias, const int16_t* bits, Int dropped) {
    const T infinity = std::numeric_limits<T>::infinity();
    V lane, largest = V{} - infinity;
    for (int l = 0; l < L; ++l) lane[l] = l;
    for (Int j = 0; j < m; j += L) {
      V v = load(s + j);
      if (bias) v += j + L <= n ? load(bias + j) : tail(bias + j, n - j);
      if (j + L > n) v = lane < V{} + T(n - j) ? v : V{} - infinity;
      store(s + j, v);
      largest = v > largest ? v : largest;
    }
    const T top = largest_of(largest);
    V sum = {};
    for (Int j = 0; j < m; j += L) {
      const V v = exponential(load(s + j) - top);
      store(s + j, v);
      sum += v;
    }
    const V factor = V{} + 1 / sum_of(sum);
    for (Int j = 0; j < m; j += L) {  // beyond n the softmax is zero, whatever the bits
      const Whole drawn = __builtin_convertvector(*(const Bits*)(bits + j), Whole);
      store(s + j, load(s + j) * (drawn < Whole{} + Integer(dropped) ? -factor : factor));
    }
  }

  struct Place {  // of one graph and head
    Int n, m, d, width;
    const T *q, *k, *v, *bias;
    const int16_t* bits;
    T* weights;
    Int node, column, bias_query, bits_query;
    T* grad_bias;
  };

  template <class F>
  static void each(const Attention& a, F function) {
    T* weights = (T*)a.weights;
    const Int d = a.dim / a.heads, width = 3 * a.dim;
    for (Int g = 0; g < a.groups; ++g)
      for (Int b = 0; b < a.graphs[g]; ++b)
        for (Int h = 0; h < a.heads; ++h) {
          const Int n = a.size[g][b], m = rounded(n), node = a.first[g][b], padded = a.padded[g];
          const Int dense = (b * a.heads + h) * padded * padded;
          const T *q = (const T*)a.qkv + node * width + h * d, *bias = (const T*)a.bias[g];
          const Int shift = b * a.strides[3 * g] + h * a.strides[3 * g + 1];
          T* grad_bias = a.grad_bias ? (T*)a.grad_bias[g] : nullptr;
          function(Place{n, m, d, width, q, q + a.dim, q + 2 * a.dim, bias ? bias + shift : nullptr, a.bits[g] + dense, weights,
                         node, h * d, a.strides[3 * g + 2], padded, grad_bias ? grad_bias + shift : nullptr});
          weights += n * m;
        }
  }

  static void forward(const Attention& a) {
    Buffer keys, kept;
    each(a, [&](const Place& p) {
      keys.resize(std::max<size_t>(keys.size(), p.d * p.m));
      kept.resize(std::max<size_t>(kept.size(), p.n * p.m));
      transpose(p.n, p.d, p.m, p.k, p.width, T(a.scale), keys.data());
      product(p.n, p.d, p.m, {p.q, p.width}, {keys.data(), p.m}, {p.weights, p.m});
      for (Int i = 0; i < p.n; ++i)
        softmax(p.n, p.m, p.weights + i * p.m, p.bias ? p.bias + i * p.bias_query : nullptr, p.bits + i * p.bits_query, a.dropped);
      keep(p, T(1 / a.share), kept.data());
      product(p.n, p.n, p.d, {kept.data(), p.m}, {p.v, p.width}, {(T*)a.out + p.node * a.dim + p.column, a.dim});
    });
  }

  // The entries that stay, divided by their share.
  static void keep(const Place& p, T factor, T* to) {
    const V zero = {};
    for (Int i = 0; i < p.n * p.m; i += L) {
      const V w = load(p.weights + i);
      store(to + i, w < zero ? zero : w * factor);
    }
  }

  static void backward(const Attention& a) {
    Buffer values, kept, slope;
    each(a, [&](const Place& p) {
      values.resize(std::max<size_t>(values.size(), p.d * p.m));
      kept.resize(std::max<size_t>(kept.size(), p.n * p.m));
      slope.resize(std::max<size_t>(slope.size(), p.n * p.m));
      const T* g = (const T*)a.grad + p.node * a.dim + p.column;
      T* to = (T*)a.grad_qkv + p.node * p.width + p.column;
      const T factor = T(1 / a.share);
      keep(p, factor, kept.data());
      Tile::template outer<false>(p.n, p.n, p.d, {kept.data(), p.m}, {g, a.dim}, {to + 2 * a.dim, p.width});
      transpose(p.n, p.d, p.m, p.v, p.width, factor, values.data());
      product(p.n, p.d, p.m, {g, a.dim}, {values.data(), p.m}, {slope.data(), p.m});
      const V zero = {};
      for (Int i = 0; i < p.n; ++i) {
        T* s = slope.data() + i * p.m;
        const T* w = p.weights + i * p.m;
        V sum = {};
        for (Int j = 0; j < p.m; j += L) {  // beyond n the softmax is zero
          const V v = load(w + j) > zero ? load(s + j) : zero;
          store(s + j, v);
          sum += v * load(w + j);
        }
        const T total = sum_of(sum);
        for (Int j = 0; j < p.m; j += L) {
          const V v = load(w + j), absolute = v < zero ? -v : v;
          store(s + j, absolute * (load(s + j) - total));
        }
        if (p.grad_bias) std::memcpy(p.grad_bias + i * p.bias_query, s, p.n * sizeof(T));
        for (Int j = 0; j < p.m; j += L) store(s + j, T(a.scale) * load(s + j));
      }
      product(p.n, p.n, p.d, {slope.data(), p.m}, {p.k, p.width}, {to, p.width});
      Tile::template outer<false>(p.n, p.n, p.d, {slope.data(), p.m}, {p.q, p.width}, {to + a.dim, p.width});
    });
  }
};

[[maybe_unused]] bool fits(const Attention& a, Int lanes) { return a.dim / a.heads % lanes == 0; }

}  // namespace

EXPORT(attention, Attention, Heads)
