// Small dense products whose operands stay in the first cache, in vectors of BYTES bytes.

#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <exception>
#include <stdexcept>
#include <type_traits>
#include <vector>

typedef int64_t Int;

namespace {

#ifdef __AVX512F__
constexpr int kRows = 6, kColumns = 8;  // rows of a tile of products; columns of a tile of outer products
#else
constexpr int kRows = 3, kColumns = 4;
#endif
constexpr Int kBlock = 60;  // rows of a block, a multiple of kRows

// Runs a kernel. 1 where its buffers do not fit into memory, 2 where an index is out of range: an exception must not leave the
// library, it would end the process.
template <class F>
int guarded(F kernel) {
  try {
    kernel();
  } catch (const std::out_of_range&) {
    return 2;
  } catch (const std::exception&) {
    return 1;
  }
  return 0;
}

template <class T, int BYTES>
struct Tiles {
  typedef T V __attribute__((vector_size(BYTES)));
  typedef T U __attribute__((vector_size(BYTES), aligned(sizeof(T)), may_alias));
  static constexpr int L = BYTES / sizeof(T);

  static inline V load(const T* p) { return *(const U*)p; }
  static inline void store(T* p, V v) { *(U*)p = v; }

  // x[0] after x[l] = join(x[l], x[l + HALF]), then the same for a half of HALF, and so on.
  template <int HALF, class F>
  static inline T joined(T* x, F join) {
    if constexpr (HALF > 0) {
      for (int l = 0; l < HALF; ++l) x[l] = join(x[l], x[l + HALF]);
      return joined<HALF / 2>(x, join);
    }
    return x[0];
  }
  static inline T sum_of(V v) {
    T x[L];
    store(x, v);
    return joined<L / 2>(x, [](T a, T b) { return a + b; });
  }
  static inline T largest_of(V v) {
    T x[L];
    store(x, v);
    return joined<L / 2>(x, [](T a, T b) { return a > b ? a : b; });
  }

  // Adds rows of d = z - pivot, and of d^2, to sums [2, f].
  struct Moments { const T* pivot; const T* weight; T* sums; Int f; };

  // A matrix by rows, `ld` numbers apart.
  template <class P>
  struct Rows {
    P* at; Int ld;
    Rows(P* at, Int ld) : at(at), ld(ld) {}
    Rows part(Int row, Int column) const { return {at + row * ld + column, ld}; }
  };
  typedef Rows<const T> In;
  typedef Rows<T> Out;

  // c = a b for M rows, an inner size of n and NV vectors of columns; with moments of c.
  template <int M, int NV>
  static inline void tile(Int n, In a, In b, Out c, const Moments* moments, Int row, Int column) {
    V sum[M][NV] = {};
    for (Int k = 0; k < n; ++k) {
      V w[NV];
      for (int j = 0; j < NV; ++j) w[j] = load(b.at + k * b.ld + j * L);
      for (int i = 0; i < M; ++i) {
        const T s = a.at[i * a.ld + k];
        for (int j = 0; j < NV; ++j) sum[i][j] += s * w[j];
      }
    }
    for (int i = 0; i < M; ++i)
      for (int j = 0; j < NV; ++j) store(c.at + i * c.ld + j * L, sum[i][j]);
    if (!moments) return;
    for (int j = 0; j < NV; ++j) {
      T* s = moments->sums + column + j * L;
      V first = load(s), second = load(s + moments->f), pivot = load(moments->pivot + column + j * L);
      for (int i = 0; i < M; ++i) {
        V d = sum[i][j] - pivot, wd = moments->weight ? moments->weight[row + i] * d : d;
        first += wd;
        second += wd * d;
      }
      store(s, first);
      store(s + moments->f, second);
    }
  }

  // Calls the function with a constant that is the count, which is at most MOST; a count of zero is nothing to do.
  template <int MOST, class F>
  static inline void remainder(Int count, F function) {
    if constexpr (MOST > 0) {
      if (count == MOST) function(std::integral_constant<int, MOST>{});
      else remainder<MOST - 1>(count, function);
    }
  }

  template <int NV>
  static void panel(Int rows, Int n, In a, In b, Out c, const Moments* moments, Int column) {
    Int i = 0;
    for (; i + kRows <= rows; i += kRows) tile<kRows, NV>(n, a.part(i, 0), b, c.part(i, 0), moments, i, column);
    remainder<kRows - 1>(rows - i, [&](auto left) { tile<left, NV>(n, a.part(i, 0), b, c.part(i, 0), moments, i, column); });
  }

  // c [rows, f] = a [rows, n] b [n, f].
  static void product(Int rows, Int n, Int f, In a, In b, Out c, const Moments* moments = nullptr) {
    Int j = 0;
    for (; j + 4 * L <= f; j += 4 * L) panel<4>(rows, n, a, b.part(0, j), c.part(0, j), moments, j);
    if (j + 2 * L <= f) { panel<2>(rows, n, a, b.part(0, j), c.part(0, j), moments, j); j += 2 * L; }
    if (j + L <= f) panel<1>(rows, n, a, b.part(0, j), c.part(0, j), moments, j);
  }

  template <int M, int NV, bool ADD>
  static inline void outer_tile(Int rows, In a, In b, Out c) {
    V sum[M][NV] = {};
    if constexpr (ADD)
      for (int i = 0; i < M; ++i)
        for (int j = 0; j < NV; ++j) sum[i][j] = load(c.at + i * c.ld + j * L);
    for (Int r = 0; r < rows; ++r) {
      V w[NV];
      for (int j = 0; j < NV; ++j) w[j] = load(b.at + r * b.ld + j * L);
      for (int i = 0; i < M; ++i) {
        const T s = a.at[r * a.ld + i];
        for (int j = 0; j < NV; ++j) sum[i][j] += s * w[j];
      }
    }
    for (int i = 0; i < M; ++i)
      for (int j = 0; j < NV; ++j) store(c.at + i * c.ld + j * L, sum[i][j]);
  }

  template <int NV, bool ADD>
  static void outer_panel(Int rows, Int n, In a, In b, Out c) {
    Int i = 0;
    for (; i + kColumns <= n; i += kColumns) outer_tile<kColumns, NV, ADD>(rows, a.part(0, i), b, c.part(i, 0));
    remainder<kColumns - 1>(n - i, [&](auto left) { outer_tile<left, NV, ADD>(rows, a.part(0, i), b, c.part(i, 0)); });
  }

  // c [n, f] += a [rows, n]^T b [rows, f]; with ADD = false: c = a^T b.
  template <bool ADD = true>
  static void outer(Int rows, Int n, Int f, In a, In b, Out c) {
    Int j = 0;
    for (; j + 2 * L <= f; j += 2 * L) outer_panel<2, ADD>(rows, n, a, b.part(0, j), c.part(0, j));
    if (j + L <= f) outer_panel<1, ADD>(rows, n, a, b.part(0, j), c.part(0, j));
  }
};

}  // namespace

// The functions that Python calls: KERNEL<T, BYTES>::forward and ::backward, in the longest vectors for which
// fits(call, numbers in a vector) holds.
#ifdef __AVX512F__
#define CALL(KERNEL, PASS, T) fits(*a, 64 / sizeof(T)) ? KERNEL<T, 64>::PASS(*a) : KERNEL<T, 32>::PASS(*a)
#else
#define CALL(KERNEL, PASS, T) KERNEL<T, 32>::PASS(*a)
#endif
#define EXPORT(NAME, STRUCTURE, KERNEL) \
  extern "C" { \
  int NAME##_forward_float32(const STRUCTURE* a) { return guarded([&] { CALL(KERNEL, forward, float); }); } \
  int NAME##_forward_float64(const STRUCTURE* a) { return guarded([&] { CALL(KERNEL, forward, double); }); } \
  int NAME##_backward_float32(const STRUCTURE* a) { return guarded([&] { CALL(KERNEL, backward, float); }); } \
  int NAME##_backward_float64(const STRUCTURE* a) { return guarded([&] { CALL(KERNEL, backward, double); }); } \
  }
