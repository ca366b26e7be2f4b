// Memory for large tensors, kept when they are gone.
//
// glibc returns freed blocks of 32 MB and more to the operating system, which provides and clears every page of the next one anew:
// nearly half of a training step on peptides. A block is lent as a DLPack tensor, whose deleter gives it back.

#include <map>
#include <memory>
#include <mutex>
#include <new>

#include "tiles.h"

namespace {

struct Tensor {  // DLManagedTensor of DLPack
  void* data;
  int32_t device_type, device;
  int32_t dimensions;
  uint8_t kind, bits; uint16_t lanes;
  Int *shape, *strides; uint64_t offset;
  void* context;
  void (*deleter)(Tensor*);
};

struct Loan { Tensor tensor; Int shape[2]; size_t bytes; };

constexpr std::align_val_t kAlign{64};
std::mutex mutex;
std::multimap<size_t, void*> idle;  // by size

void release(std::multimap<size_t, void*>::iterator block) {
  ::operator delete(block->second, kAlign);
  idle.erase(block);
}

// The smallest idle block that is large enough, or a new one in exchange for the largest that is not: there are never more blocks than
// were in use at once. Null where memory does not suffice.
void* take(size_t& bytes) {
  const std::lock_guard<std::mutex> lock(mutex);
  const auto found = idle.lower_bound(bytes);
  if (found == idle.end()) {
    if (!idle.empty()) release(std::prev(idle.end()));
    return ::operator new(bytes, kAlign, std::nothrow);
  }
  bytes = found->first;
  void* const data = found->second;
  idle.erase(found);
  return data;
}

void give_back(Tensor* tensor) {
  const std::unique_ptr<Loan> loan(static_cast<Loan*>(tensor->context));
  const bool failed = guarded([&] {
    const std::lock_guard<std::mutex> lock(mutex);
    idle.emplace(loan->bytes, tensor->data);
  });
  if (failed) ::operator delete(tensor->data, kAlign);
}

}  // namespace

extern "C" {

// A tensor [rows, width] of floating-point numbers without values.
void* lend(Int rows, Int width, Int bits) {
  void* made = nullptr;
  guarded([&] {
    auto loan = std::make_unique<Loan>();
    loan->bytes = size_t(rows) * width * bits / 8;
    loan->shape[0] = rows, loan->shape[1] = width;
    loan->tensor = {take(loan->bytes), 1, 0, 2, 2, uint8_t(bits), 1, loan->shape, nullptr, 0, loan.get(), give_back};
    if (loan->tensor.data) made = loan.release();
  });
  return made;
}

// Frees all idle blocks; returns their bytes.
Int release_idle() {
  const std::lock_guard<std::mutex> lock(mutex);
  Int bytes = 0;
  while (!idle.empty()) {
    bytes += idle.begin()->first;
    release(idle.begin());
  }
  return bytes;
}

}
