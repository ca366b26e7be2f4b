// Newton-Schulz steps of Muon: matrices with nearly orthogonal columns, in place.

#include "tiles.h"

struct Muon {  // training/compiled_muon.py has the same fields; all of them are 8 bytes
  Int count, rows, columns, steps;
  double first, third, fifth, eps;  // coefficients of x, x^3 and x^5; least norm
  void* x;                          // [count, rows, columns]
};

namespace {

template <class T, int BYTES>
struct NewtonSchulz : Tiles<T, BYTES> {
  using typename Tiles<T, BYTES>::V;
  using Tiles<T, BYTES>::L;
  using Tiles<T, BYTES>::load;
  using Tiles<T, BYTES>::store;
  using Tiles<T, BYTES>::product;
  using Tiles<T, BYTES>::sum_of;
  typedef Tiles<T, BYTES> Tile;

  // to = a from + b more
  static void combine(Int size, T a, const T* from, T b, const T* more, T* to) {
    for (Int i = 0; i < size; i += L) store(to + i, a * load(from + i) + b * load(more + i));
  }

  static void forward(const Muon& a) {
    const Int n = a.rows, f = a.columns;
    std::vector<T> gram(f * f), square(f * f), more(n * f);
    for (Int m = 0; m < a.count; ++m) {
      T* x = (T*)a.x + m * n * f;
      double sum = 0;
      for (Int i = 0; i < n; ++i) {
        V row = {};
        for (Int j = 0; j < f; j += L) row += load(x + i * f + j) * load(x + i * f + j);
        sum += double(sum_of(row));
      }
      const T size = T(1 / std::max(std::sqrt(sum), a.eps));
      for (Int i = 0; i < n * f; ++i) x[i] *= size;
      for (Int step = 0; step < a.steps; ++step) {
        Tile::template outer<false>(n, f, f, {x, f}, {x, f}, {gram.data(), f});
        product(f, f, f, {gram.data(), f}, {gram.data(), f}, {square.data(), f});
        combine(f * f, T(a.third), gram.data(), T(a.fifth), square.data(), square.data());
        product(n, f, f, {x, f}, {square.data(), f}, {more.data(), f});
        combine(n * f, T(a.first), x, T(1), more.data(), x);
      }
    }
  }
};

[[maybe_unused]] bool fits(const Muon& a, Int lanes) { return a.columns % lanes == 0; }

}  // namespace

extern "C" {
int muon_float32(const Muon* a) { return guarded([&] { CALL(NewtonSchulz, forward, float); }); }
int muon_float64(const Muon* a) { return guarded([&] { CALL(NewtonSchulz, forward, double); }); }
}
