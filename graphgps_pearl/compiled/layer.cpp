// Parts of a GPS layer on packed nodes: a linear map, and the sum of GINE's messages.

#include "tiles.h"

// layers/kernels/compiled_layer.py has the same fields; all of them are 8 bytes.
struct Linear {  // y = x W^T + b
  Int rows, in, out;
  const void *x, *weight, *bias; void* y;                        // [rows, in], [out, in], [out] or null, [rows, out]
  const void* grad; void *grad_x, *grad_weight, *grad_bias;      // grad_x may be null
};

struct Messages {  // y_v = x_v + the sum of max(0, x_u + e_uv) over edges (u, v)
  Int nodes, edges, width;
  const Int *source, *target;
  const void *x, *edge; void* y;                                 // [nodes, width], [edges, width]
  const void* grad; void *grad_x, *grad_edge;
};

namespace {

template <class T, int BYTES>
struct LinearMap : Tiles<T, BYTES> {
  using Tiles<T, BYTES>::L;
  using Tiles<T, BYTES>::load;
  using Tiles<T, BYTES>::store;
  using Tiles<T, BYTES>::product;
  using Tiles<T, BYTES>::outer;

  static void forward(const Linear& a) {
    const T *x = (const T*)a.x, *weight = (const T*)a.weight, *bias = (const T*)a.bias;
    T* y = (T*)a.y;
    std::vector<T> transposed(a.in * a.out);
    for (Int i = 0; i < a.in; ++i)
      for (Int j = 0; j < a.out; ++j) transposed[i * a.out + j] = weight[j * a.in + i];
    for (Int r = 0; r < a.rows; r += kBlock) {
      const Int n = std::min(kBlock, a.rows - r);
      T* to = y + r * a.out;
      product(n, a.in, a.out, {x + r * a.in, a.in}, {transposed.data(), a.out}, {to, a.out});
      for (Int i = 0; bias && i < n; ++i)
        for (Int j = 0; j < a.out; j += L) store(to + i * a.out + j, load(to + i * a.out + j) + load(bias + j));
    }
  }

  static void backward(const Linear& a) {
    const T *x = (const T*)a.x, *grad = (const T*)a.grad;
    T *grad_x = (T*)a.grad_x, *grad_weight = (T*)a.grad_weight, *grad_bias = (T*)a.grad_bias;
    std::fill(grad_weight, grad_weight + a.in * a.out, T(0));
    std::vector<double> sums(a.out);
    std::vector<T> block(a.out);
    for (Int r = 0; r < a.rows; r += kBlock) {
      const Int n = std::min(kBlock, a.rows - r);
      const T* g = grad + r * a.out;
      if (grad_x) product(n, a.out, a.in, {g, a.out}, {(const T*)a.weight, a.in}, {grad_x + r * a.in, a.in});
      outer(n, a.out, a.in, {g, a.out}, {x + r * a.in, a.in}, {grad_weight, a.in});
      if (!grad_bias) continue;
      std::fill(block.begin(), block.end(), T(0));
      for (Int i = 0; i < n; ++i)
        for (Int j = 0; j < a.out; j += L) store(block.data() + j, load(block.data() + j) + load(g + i * a.out + j));
      for (Int j = 0; j < a.out; ++j) sums[j] += block[j];
    }
    for (Int j = 0; grad_bias && j < a.out; ++j) grad_bias[j] = T(sums[j]);
  }
};

template <class T, int BYTES>
struct GineMessages : Tiles<T, BYTES> {
  using typename Tiles<T, BYTES>::V;
  using Tiles<T, BYTES>::L;
  using Tiles<T, BYTES>::load;
  using Tiles<T, BYTES>::store;

  static void check(const Messages& a) {
    for (const Int* ends : {a.source, a.target})
      for (Int k = 0; k < a.edges; ++k)
        if (ends[k] < 0 || ends[k] >= a.nodes) throw std::out_of_range("edges");
  }

  static void forward(const Messages& a) {
    check(a);
    const T *x = (const T*)a.x, *edge = (const T*)a.edge;
    T* y = (T*)a.y;
    const V zero = {};
    std::copy(x, x + a.nodes * a.width, y);
    for (Int k = 0; k < a.edges; ++k) {
      const T *from = x + a.source[k] * a.width, *e = edge + k * a.width;
      T* to = y + a.target[k] * a.width;
      for (Int j = 0; j < a.width; j += L) {
        const V m = load(from + j) + load(e + j);
        store(to + j, load(to + j) + (m < zero ? zero : m));  // NaN stays
      }
    }
  }

  static void backward(const Messages& a) {
    const T *x = (const T*)a.x, *edge = (const T*)a.edge, *grad = (const T*)a.grad;
    T *grad_x = (T*)a.grad_x, *grad_edge = (T*)a.grad_edge;
    const V zero = {};
    std::copy(grad, grad + a.nodes * a.width, grad_x);
    for (Int k = 0; k < a.edges; ++k) {
      const Int s = a.source[k] * a.width;
      const T *e = edge + k * a.width, *g = grad + a.target[k] * a.width;
      for (Int j = 0; j < a.width; j += L) {
        const V m = load(x + s + j) + load(e + j), kept = m <= zero ? zero : load(g + j);
        store(grad_x + s + j, load(grad_x + s + j) + kept);
        store(grad_edge + k * a.width + j, kept);
      }
    }
  }
};

[[maybe_unused]] bool fits(const Linear& a, Int lanes) { return a.in % lanes == 0 && a.out % lanes == 0; }
[[maybe_unused]] bool fits(const Messages& a, Int lanes) { return a.width % lanes == 0; }

}  // namespace

EXPORT(linear, Linear, LinearMap)
EXPORT(messages, Messages, GineMessages)
