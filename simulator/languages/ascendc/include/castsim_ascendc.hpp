// The names of AscendC as a vector kernel meets them: tensors, queues, pipes, events, copies.
// Only what the public interface fixes is shared with it: names, parameter lists, values of enumerations, behaviour.
#pragma once

#include <cfloat>
#include <climits>
#include <deque>
#include <functional>

#include "castsim_device.hpp"

#define ASCEND_IS_AIV constexpr(true)
#define ASCEND_IS_AIC constexpr(false)
#define ASCEND_IS_NOT_AIV constexpr(false)
#define ASCEND_IS_NOT_AIC constexpr(true)
#define ASSERT(...)
#define ASCENDC_ASSERT(...)
#define ASCENDC_DEBUG_ASSERT(...)
#define KERNEL_LOG(...)
#define KERNEL_LOG_INTERNAL(...)
#define PRINTF(...)
#define ASCENDC_TPL_ARGS_DECL(...)
#define ASCENDC_TPL_SEL(...)
#define ASCENDC_TPL_ARGS_SEL(...)
#define __simd_vf__
#define __simd_callee__
#define __local_mem__
#define __sync_alias__
#define __sync_noalias__

using uint = unsigned int;
using uint64 = uint64_t;
using uint32 = uint32_t;
using uint8 = uint8_t;
using int64 = int64_t;
using fp8_e4m3fn_t = float8_e4m3_t;
using fp8_e5m2_t = float8_e5m2_t;
using fp8_e8m0_t = float8_e8m0_t;
using fp4x2_e2m1_t = float4_e2m1x2_t;
using fp4x2_e1m2_t = float4_e1m2x2_t;
using TEventID = int8_t;
using TBufHandle = uint8_t *;

namespace AscendC {
using ::bfloat16_t;
using ::event_t;
using ::half;
using ::int4b_t;
using ::pipe_t;

enum class TPosition : uint8_t { GM, A1, A2, B1, B2, C1, C2, CO1, CO2, VECIN, VECOUT, VECCALC, LCM = VECCALC, SPM,
                                 SHM = SPM, TSCM, C2PIPE2GM, C2PIPE2LOCAL, MAX };
using QuePosition = TPosition;
#define CASTSIM_EVENTS(ROW) ROW(MTE2, V) ROW(V, MTE2) ROW(MTE3, V) ROW(V, MTE3) ROW(V, V) ROW(MTE3, MTE2) ROW(MTE2, MTE3) \
  ROW(S, V) ROW(V, S) ROW(S, MTE2) ROW(MTE2, S) ROW(S, MTE3) ROW(MTE3, S)
#define CASTSIM_EVENT(A, B) A##_##B,
enum class HardEvent : uint8_t { CASTSIM_EVENTS(CASTSIM_EVENT) CUBE, MTE2_MTE1 = CUBE, MTE1_MTE2 = CUBE, MTE1_M = CUBE,
                                 M_MTE1 = CUBE, M_V = CUBE, V_M = CUBE, MTE1_V = CUBE, MTE2_M = CUBE, M_MTE2 = CUBE,
                                 V_MTE1 = CUBE, M_FIX = CUBE, FIX_M = CUBE, MTE3_MTE1 = CUBE, MTE1_MTE3 = CUBE,
                                 M_S = CUBE, FIX_S = CUBE, MTE2_FIX = CUBE, FIX_MTE2 = CUBE, FIX_MTE3 = CUBE,
                                 MTE1_FIX = CUBE, FIX_MTE1 = CUBE, FIX_FIX = CUBE, MAX };
enum class RoundMode : uint8_t { CAST_NONE, CAST_RINT, CAST_FLOOR, CAST_CEIL, CAST_ROUND, CAST_TRUNC, CAST_ODD,
                                 CAST_HYBRID, CAST_EVEN, CAST_ZERO, UNKNOWN = 255 };
enum class CMPMODE : uint8_t { LT, GT, EQ, LE, GE, NE };
enum class SELMODE : uint8_t { VSEL_CMPMASK_SPR, VSEL_TENSOR_SCALAR_MODE, VSEL_TENSOR_TENSOR_MODE };
enum class MaskMode : uint8_t { NORMAL, COUNTER };
enum class ReduceOrder : uint8_t { ORDER_VALUE_INDEX, ORDER_INDEX_VALUE, ORDER_ONLY_VALUE, ORDER_ONLY_INDEX };
enum class CacheMode : uint8_t { CACHE_MODE_DISABLE, CACHE_MODE_NORMAL, CACHE_MODE_LAST, CACHE_MODE_PERSISTENT };
enum class CacheRwMode : uint8_t { READ, WRITE, RW };
enum class CacheLine : uint8_t { SINGLE_CACHE_LINE, ENTIRE_DATA_CACHE };
enum class DcciDst : uint8_t { CACHELINE_ALL, CACHELINE_UB, CACHELINE_OUT, CACHELINE_ATOMIC };
enum class MemDsbT : uint8_t { ALL, DDR, UB, SEQ };
enum class PaddingMode : uint8_t { Normal, Compact };
enum { AIC = 1, AIV = 2, MIX = 3 };

}  // namespace AscendC
#include "castsim_ascendc_words.hpp"
namespace AscendC {
struct DataCopyParams {
  uint16_t blockCount = 1, blockLen = 0;
  union { uint16_t srcStride, srcGap; };
  union { uint16_t dstStride, dstGap; };
  DataCopyParams() : srcStride(0), dstStride(0) {}
  DataCopyParams(uint16_t count, uint16_t length, uint16_t src, uint16_t dst)
      : blockCount(count), blockLen(length), srcStride(src), dstStride(dst) {}
};
#if __CCE_AICORE__ == 310
using CopyGap = int64_t;
#else
using CopyGap = uint32_t;
#endif
struct DataCopyExtParams {
  uint16_t blockCount = 1;
  uint32_t blockLen = 0;
  CopyGap srcStride = 0, dstStride = 0;
  uint32_t rsv = 0;
  DataCopyExtParams() = default;
  DataCopyExtParams(uint16_t count, uint32_t length, CopyGap src, CopyGap dst, uint32_t reserved)
      : blockCount(count), blockLen(length), srcStride(src), dstStride(dst), rsv(reserved) {}
};
struct DataCopyPadParams {
  bool isPad = false;
  uint8_t leftPadding = 0, rightPadding = 0;
  uint64_t paddingValue = 0;
  DataCopyPadParams() = default;
  DataCopyPadParams(bool pad, uint8_t left, uint8_t right, uint64_t value)
      : isPad(pad), leftPadding(left), rightPadding(right), paddingValue(value) {}
};
template <typename T> struct DataCopyPadExtParams {
  bool isPad = false;
  uint8_t leftPadding = 0, rightPadding = 0;
  T paddingValue = T(0);
  DataCopyPadExtParams() = default;
  DataCopyPadExtParams(bool pad, uint8_t left, uint8_t right, T value)
      : isPad(pad), leftPadding(left), rightPadding(right), paddingValue(value) {}
};
#define CASTSIM_ELSEWHERE(NAME) struct NAME { template <typename... A> NAME(A...) {} };
CASTSIM_EACH(CASTSIM_ELSEWHERE, ListTensorDesc, Nd2NzParams, Nz2NdParamsFull, DataCopyEnhancedParams, SliceInfo, DataCopyCO12DstParams,
             LoadData2DParams, LoadData3DParamsV2, MmadParams, FixpipeParamsV220, TransposeParamsExt)
}  // namespace AscendC

namespace castsim {
using AscendC::HardEvent;
using AscendC::TPosition;

inline const void *here() __attribute__((noinline));
inline const void *here() { return __builtin_return_address(0); }

constexpr long long CAPACITY = (A5 ? 248 : 192) * 1024, SCRATCH = A5 ? CAPACITY : 184 * 1024;  // the library's last 8 KiB
constexpr int MOST_BUFFERS_OF_A_PIPE = 64;

// A stretch of the buffer that InitBuffer made, and what a queue knows of it.
struct Stretch {
  long long low = 0, high = CAPACITY;
  enum { FREE, TAKEN, QUEUED } state = FREE;
  int freed = -1, queued = -1;  // ids of flags that are set and not waited for
  HardEvent queued_event = HardEvent::MAX, freed_event = HardEvent::MAX;
  bool fixed = false;  // its ids are kept
  int freed_id = -1, queued_id = -1;
};

struct Local {  // a tensor of the buffer; `high` ends what it may reach
  long long address = 0, low = 0, high = 0;
  uint32_t count = 0;
  Stretch *stretch = nullptr;
  TPosition position = TPosition::VECCALC;
};

// Elements of the buffer that the kernel reads: whole windows are asked for, and kept until something is written.
constexpr long long WINDOW = 256;
inline std::map<long long, std::array<unsigned char, WINDOW>> windows;
inline unsigned long long value_at(const void *place, const Local &tensor, const char *element, long long address,
                                   size_t size, bool recorded = true) {
  settle_writes();
  if (recorded) {
    say("g", trail_of(place), element, address, tensor.low, tensor.high);
    end();
  }
  const long long start = address / WINDOW * WINDOW;
  if (address < 0 || address + (long long)size > CAPACITY)
    refuse(place, "reads byte " + std::to_string(address) + " of a buffer of " + std::to_string(CAPACITY));
  if (!windows.count(start)) {
    say("q", trail_of(place), start, WINDOW);
    end();
    flush();
    answer(windows[start].data(), WINDOW);
  }
  unsigned long long code = 0;
  memcpy(&code, windows[start].data() + (address - start), size);
  return code;
}
inline void set_value_at(const void *place, const Local &tensor, const char *element, long long address,
                         unsigned long long code, size_t size) {
  settle_writes();
  say("v", trail_of(place), element, address, tensor.low, tensor.high, hexadecimal(code));
  end();
  const auto window = windows.find(address / WINDOW * WINDOW);
  if (window != windows.end()) memcpy(window->second.data() + address % WINDOW, &code, size);
}

// ------------------------------------------------------------------------------------------------ events
struct EventPair { pipe_t from, to; };
#define CASTSIM_PAIR(A, B) {PIPE_##A, PIPE_##B},
inline const EventPair EVENT_PAIRS[] = {CASTSIM_EVENTS(CASTSIM_PAIR) {PIPE_M, PIPE_M}};
#define CASTSIM_EVENT_NAME(A, B) #A "_" #B,
inline const char *const EVENT_NAMES[] = {CASTSIM_EVENTS(CASTSIM_EVENT_NAME) "an event of the cube unit"};
inline std::array<std::array<bool, 8>, 16> events{};  // which ids are taken
inline int lowest_free(const void *place, HardEvent event) {
  const auto &pool = events[size_t(event)];
  const auto free = std::find(pool.begin(), pool.end(), false);
  if (free == pool.end()) refuse(place, std::string("all 8 event ids of ") + EVENT_NAMES[int(event)] + " are taken");
  return int(free - pool.begin());
}
inline int take_id(const void *place, HardEvent event) {
  const int id = lowest_free(place, event);
  return events[size_t(event)][size_t(id)] = true, id;
}
inline void give_back(HardEvent event, int id) { if (id >= 0 && id < 8) events[size_t(event)][size_t(id)] = false; }
inline void event_flag(const void *place, const char *what, HardEvent event, int id) {
  if (event >= HardEvent::CUBE) refuse(place, "castsim does not model events of the cube unit");
  const EventPair pair = EVENT_PAIRS[int(event)];
  if (pair.from == pair.to) {
    if (*what == 's') barrier(place, PIPE_V);
  } else {
    flag(place, what, pair.from, pair.to, id);
  }
}

inline void wait_for(const void *place, Stretch &own, int &id, HardEvent event) {
  if (id < 0) return;
  event_flag(place, "wait", event, id);
  if (!own.fixed) give_back(event, id);
  id = -1;
}

// What queues set and wait for, by where tensors come from and go to.
constexpr bool in_buffer(TPosition position) {
  return position == TPosition::VECIN || position == TPosition::VECOUT || position == TPosition::VECCALC;
}
constexpr HardEvent queue_event(TPosition src, TPosition dst) {
  if (src == TPosition::GM && in_buffer(dst)) return HardEvent::MTE2_V;
  if (in_buffer(src) && dst == TPosition::GM) return HardEvent::V_MTE3;
  if (src == TPosition::VECIN && dst == TPosition::VECCALC) return HardEvent::MTE2_V;
  if (src == TPosition::VECCALC && dst == TPosition::VECOUT) return HardEvent::V_MTE3;
  return in_buffer(src) && in_buffer(dst) ? HardEvent::MTE2_MTE3 : HardEvent::CUBE;
}
constexpr HardEvent reversed(HardEvent event) {
  switch (event) {
    case HardEvent::MTE2_V: return HardEvent::V_MTE2;
    case HardEvent::V_MTE3: return HardEvent::MTE3_V;
    case HardEvent::MTE2_MTE3: return HardEvent::MTE3_MTE2;
    default: return HardEvent::CUBE;
  }
}
[[noreturn]] inline void refuse_cube(const void *place, const std::string &what) {
  refuse(place, what + " is of the cube unit; castsim runs vector kernels (GM, VECIN, VECOUT, VECCALC)");
}
}  // namespace castsim

namespace AscendC {
// ------------------------------------------------------------------------------------------------ tensors
struct TBuffAddr { uint32_t dataLen = 0, bufferAddr = 0, bufferHandle = 0; uint8_t logicPos = 0; };
template <typename T> struct LocalTensor;
template <typename T> class LocalElement {
 public:
  LocalElement(const LocalTensor<T> &tensor, uint32_t number) : tensor_(tensor), number_(number) {}
  CASTSIM_CALL operator T() const { return tensor_.value(CASTSIM_HERE, number_); }
  CASTSIM_CALL void operator=(T value) { tensor_.set(CASTSIM_HERE, number_, value); }
  CASTSIM_CALL void operator=(const LocalElement &other) { tensor_.set(CASTSIM_HERE, number_, T(other)); }

 private:
  const LocalTensor<T> &tensor_;
  uint32_t number_;
};

template <typename L, typename R> struct Sources { const L &left; const R &right; const char *operation; };

template <typename T> struct LocalTensor : castsim::Local {
  using PrimType = T;
  LocalTensor() = default;
  LocalTensor(const castsim::Local &other) : Local(other) {}
  CASTSIM_CALL LocalTensor(TPosition where, uint32_t byte, uint32_t elements) {
    if (!castsim::in_buffer(where)) castsim::refuse_cube(CASTSIM_HERE, "a LocalTensor there");
    address = low = byte, high = byte + bytes(elements), count = elements, position = where;
  }
  CASTSIM_CALL explicit LocalTensor(uint32_t byte) { address = low = byte, high = castsim::CAPACITY; }
  static constexpr long long bytes(long long elements) { return elements * castsim::bits_per_element<T> / 8; }
  LocalTensor operator[](uint32_t offset) const {
    LocalTensor part = *this;
    part.address += bytes(offset);
    part.count = offset < count ? count - offset : 0;
    return part;
  }
  LocalElement<T> operator()(uint32_t number) const { return {*this, number}; }
  CASTSIM_CALL T GetValue(uint32_t number) const { return value(CASTSIM_HERE, number); }
  template <typename N> CASTSIM_CALL void SetValue(uint32_t number, N what) const { set(CASTSIM_HERE, number, T(what)); }
  template <typename U> LocalTensor<U> ReinterpretCast() const {
    LocalTensor<U> other = static_cast<const Local &>(*this);
    other.count = uint32_t((unsigned long long)count * castsim::bits_per_element<T> / castsim::bits_per_element<U>);
    return other;
  }
  uint32_t GetSize() const { return count; }
  uint32_t GetLength() const { return uint32_t(bytes(count)); }
  void SetSize(uint32_t elements) { count = elements; }
  uint64_t GetPhyAddr(uint32_t offset = 0) const { return uint64_t(address + bytes(offset)); }
  int32_t GetPosition() const { return int32_t(position); }
  void SetUserTag(int32_t) {}
  // A tensor placed by hand: where it is, then from which byte on and how long.
  void SetAddr(const TBuffAddr &place) { address = low = place.bufferAddr, high = castsim::CAPACITY, position = TPosition(place.logicPos); }
  void InitBuffer(uint32_t byte, uint32_t elements) { address = low = byte, high = byte + bytes(elements), count = elements; }
  template <typename... A> void SetShapeInfo(A &&...) {}
  template <typename U> void SetAddrWithOffset(LocalTensor<U> &src, uint32_t offset) {
    static_cast<Local &>(*this) = src;
    address += bytes(offset);
  }
  template <typename L, typename R> CASTSIM_CALL void operator=(const Sources<L, R> &sources);
  T value(const void *place, uint32_t number) const {
    static_assert(castsim::bits_per_element<T> >= 8, "GetValue reads whole bytes: ReinterpretCast the tensor first");
    const unsigned long long code =
        castsim::value_at(place, *this, castsim::Element<T>::name(), address + bytes(number), sizeof(T));
    T result;
    memcpy(static_cast<void *>(&result), &code, sizeof result);
    return result;
  }
  void set(const void *place, uint32_t number, T what) const {
    castsim::set_value_at(place, *this, castsim::Element<T>::name(), address + bytes(number), castsim::code_of(what),
                          sizeof(T));
  }
};

template <typename T> struct GlobalTensor {
  using PrimType = T;
  uintptr_t address = 0;
  uint64_t size = 0;
  void SetGlobalBuffer(T *pointer, uint64_t elements = 0) { address = uintptr_t(pointer), size = elements; }
  static constexpr long long bytes(long long elements) { return elements * castsim::bits_per_element<T> / 8; }
  GlobalTensor operator[](uint64_t offset) const {
    GlobalTensor part = *this;
    part.address += uintptr_t(bytes((long long)offset));
    part.size = offset < size ? size - offset : 0;
    return part;
  }
  CASTSIM_CALL T GetValue(uint64_t number) const {
    const uintptr_t from = address + uintptr_t(bytes((long long)number));
    castsim::settle_writes();
    castsim::global_read(CASTSIM_HERE, from, castsim::Element<T>::name());
    castsim::quiet = true;
    T value;
    memcpy(static_cast<void *>(&value), reinterpret_cast<const void *>(from), sizeof value);
    castsim::quiet = false;
    return value;
  }
  T operator()(uint64_t number) const { return GetValue(number); }
  template <typename N> CASTSIM_CALL void SetValue(uint64_t number, N what) const {
    const T value = T(what);
    castsim::global_store(CASTSIM_HERE, address + uintptr_t(bytes((long long)number)), castsim::Element<T>::name(),
                          &value, sizeof value);
  }
  T *GetPhyAddr(uint64_t offset = 0) const { return reinterpret_cast<T *>(address + uintptr_t(bytes((long long)offset))); }
  template <typename U> GlobalTensor<U> ReinterpretCast() const { return {address, size * sizeof(T) / sizeof(U)}; }
  uint64_t GetSize() const { return size; }
  template <CacheRwMode Mode = CacheRwMode::RW> void SetL2CacheHint(CacheMode) {}
  template <typename... A> void SetShapeInfo(A &&...) {}
};
}  // namespace AscendC

namespace castsim {
template <typename T> constexpr bool is_tensor = false;
template <typename T> constexpr bool is_tensor<AscendC::LocalTensor<T>> = true;
template <typename T> constexpr bool is_tensor<AscendC::GlobalTensor<T>> = true;
}  // namespace castsim

// A name on tensors that castsim does not run; kernels have functions of their own of these names.
#define CASTSIM_NOT_RUN(NAME, WHY) template <auto... V, typename... A> \
    requires((castsim::is_tensor<std::remove_cvref_t<A>> || ...)) CASTSIM_CALL bool NAME(A &&...) { \
    castsim::refuse(CASTSIM_HERE, #NAME " " WHY); } template <typename T, auto... V, typename... A> \
    requires((castsim::is_tensor<std::remove_cvref_t<A>> || ...)) CASTSIM_CALL bool NAME(A &&...) { \
    castsim::refuse(CASTSIM_HERE, #NAME " " WHY); }

namespace AscendC {
// ------------------------------------------------------------------------------------------------ pipes and queues
class TPipe;
}
namespace castsim {
inline AscendC::TPipe *pipe_now = nullptr;
inline std::vector<Stretch *> stretches;  // of the pipe and of its pools
inline void wait_for_all(const void *place) {
  for (Stretch *own : stretches) wait_for(place, *own, own->freed, own->freed_event);
}
void control(const void *place, const char *what, unsigned long long first = 0, unsigned long long second = 0);
inline std::string atomic;  // what UB-to-GM copies do with what is there
inline constexpr unsigned long long FULL = ~0ull;
template <typename T> AscendC::LocalTensor<T> tensor_of(Stretch *stretch, TPosition position) {
  AscendC::LocalTensor<T> tensor;
  tensor.address = tensor.low = stretch->low;
  tensor.high = stretch->high;
  tensor.count = uint32_t((stretch->high - stretch->low) * 8 / bits_per_element<T>);
  tensor.stretch = stretch;
  tensor.position = position;
  return tensor;
}
}  // namespace castsim

namespace AscendC {
struct TQueConfig { bool nd2nz = false, nz2nd = false, scmBlockGroup = false; uint32_t bufferLen = 0, bufferNumber = 0,
                    consumerSize = 0; TPosition consumer[8] = {}; bool enableStaticEvtId = false, enableLoopQueue = false; };

template <TPosition Src, TPosition Dst, int32_t Depth, auto Mask = 0> class TQueBind {
 public:
  static constexpr HardEvent SET = castsim::queue_event(Src, Dst), FREED = castsim::reversed(SET);
  void castsim_init(const void *place, castsim::Stretch *first, int number) {
    if (SET == HardEvent::CUBE) castsim::refuse_cube(place, "a queue there");
    buffers_.clear();
    waiting_.clear();
    next_ = 0;
    for (int i = 0; i < number; ++i) {
      castsim::Stretch *own = first + i;
      buffers_.push_back(own);
      if (Depth != 0) continue;
      own->fixed = true;
      own->queued_id = castsim::take_id(place, SET), own->freed_id = castsim::take_id(place, FREED);
    }
  }
  template <typename T> CASTSIM_CALL LocalTensor<T> AllocTensor() { return alloc<T>(CASTSIM_HERE); }
  template <typename T> CASTSIM_CALL void AllocTensor(LocalTensor<T> &tensor) { tensor = alloc<T>(CASTSIM_HERE); }
  template <typename T> CASTSIM_CALL bool EnQue(const LocalTensor<T> &tensor) { return enque(CASTSIM_HERE, SET, tensor); }
  template <TPosition From, TPosition To, typename T> CASTSIM_CALL bool EnQue(const LocalTensor<T> &tensor) {
    return enque(CASTSIM_HERE, castsim::queue_event(From, To), tensor);
  }
  template <typename T> CASTSIM_CALL LocalTensor<T> DeQue() { return deque<T>(CASTSIM_HERE); }
  template <typename T> CASTSIM_CALL void DeQue(LocalTensor<T> &tensor) { tensor = deque<T>(CASTSIM_HERE); }
  template <TPosition From, TPosition To, typename T> CASTSIM_CALL LocalTensor<T> DeQue() { return deque<T>(CASTSIM_HERE); }
  template <typename T> CASTSIM_CALL void FreeTensor(LocalTensor<T> &tensor) { free(CASTSIM_HERE, tensor); }
  template <typename T> CASTSIM_CALL void FreeTensor(const LocalTensor<T> &tensor) { free(CASTSIM_HERE, tensor); }
  CASTSIM_CALL void FreeAllEvent() {
    for (castsim::Stretch *own : buffers_) castsim::wait_for(CASTSIM_HERE, *own, own->freed, own->freed_event);
  }
  bool VacantInQue() const { return int(waiting_.size()) < (Depth ? Depth : 1); }
  bool HasTensorInQue() const { return !waiting_.empty(); }
  int32_t GetTensorCountInQue() const { return int32_t(waiting_.size()); }
  bool HasIdleBuffer() const {
    return std::any_of(buffers_.begin(), buffers_.end(), [](auto *own) { return own->state == own->FREE; });
  }
 private:
  std::vector<castsim::Stretch *> buffers_;
  std::deque<castsim::Stretch *> waiting_;
  size_t next_ = 0;

  static void signal(const void *place, castsim::Stretch &own, int &id, HardEvent event, int fixed) {
    if (event == HardEvent::CUBE) castsim::refuse_cube(place, "a queue between these positions");
    id = own.fixed && fixed >= 0 ? fixed : castsim::take_id(place, event);
    castsim::event_flag(place, "set", event, id);
  }
  template <typename T> LocalTensor<T> alloc(const void *place) {
    if (buffers_.empty()) castsim::refuse(place, "AllocTensor: InitBuffer has given the queue no buffer");
    for (size_t turn = 0; turn < buffers_.size(); ++turn) {
      castsim::Stretch *own = buffers_[next_];
      next_ = (next_ + 1) % buffers_.size();
      if (own->state != own->FREE) continue;
      castsim::wait_for(place, *own, own->freed, own->freed_event);
      own->state = own->TAKEN;
      return castsim::tensor_of<T>(own, Dst == TPosition::GM ? Src : Dst);
    }
    castsim::refuse(place, "AllocTensor: all " + std::to_string(buffers_.size()) + " buffers of the queue are in use");
  }
  bool enque(const void *place, HardEvent event, const castsim::Local &tensor) {
    castsim::Stretch *own = tensor.stretch;
    if (!owns(own)) castsim::refuse(place, "EnQue: the tensor is not of this queue");
    if (own->state == own->QUEUED) castsim::refuse(place, "EnQue: the tensor is in the queue already");
    if (waiting_.size() >= size_t(std::max<int>(Depth, int(Depth == 0) * int(buffers_.size()))))
      castsim::refuse(place, "EnQue: " + std::to_string(waiting_.size()) + " tensors are in the queue, whose depth is " +
                                 std::to_string(Depth));
    own->queued_event = event;
    signal(place, *own, own->queued, event, event == SET ? own->queued_id : -1);
    own->state = own->QUEUED;
    waiting_.push_back(own);
    return true;
  }
  template <typename T> LocalTensor<T> deque(const void *place) {
    if (waiting_.empty()) castsim::refuse(place, "DeQue: no tensor is in the queue; EnQue comes first");
    castsim::Stretch *own = waiting_.front();
    waiting_.pop_front();
    castsim::wait_for(place, *own, own->queued, own->queued_event);
    own->state = own->TAKEN;
    return castsim::tensor_of<T>(own, Dst == TPosition::GM ? Src : Dst);
  }
  void free(const void *place, const castsim::Local &tensor) {
    castsim::Stretch *own = tensor.stretch;
    if (!owns(own)) castsim::refuse(place, "FreeTensor: the tensor is not of this queue");
    if (own->state == own->FREE) castsim::refuse(place, "FreeTensor: the tensor is free already");
    if (own->state == own->QUEUED) castsim::refuse(place, "FreeTensor: the tensor is in the queue; DeQue comes first");
    own->freed_event = FREED;
    signal(place, *own, own->freed, FREED, own->freed_id);
    own->state = own->FREE;
  }
  bool owns(castsim::Stretch *own) const { return std::find(buffers_.begin(), buffers_.end(), own) != buffers_.end(); }
};

namespace castsim_queues {
constexpr TPosition from(TPosition position) { return position == TPosition::VECIN ? TPosition::GM : position; }
constexpr TPosition to(TPosition position) { return position == TPosition::VECOUT ? TPosition::GM : position; }
}  // namespace castsim_queues
template <TPosition Where, int32_t Depth, auto Mask = 0>
class TQue : public TQueBind<castsim_queues::from(Where), castsim_queues::to(Where), Depth, Mask> {};

template <TPosition Where = TPosition::VECCALC> class TBuf {
 public:
  void castsim_init(castsim::Stretch *own) { own_ = own; }
  template <typename T> CASTSIM_CALL LocalTensor<T> Get() const { return get<T>(CASTSIM_HERE); }
  template <typename T> CASTSIM_CALL LocalTensor<T> Get(uint32_t elements) const {
    LocalTensor<T> tensor = get<T>(CASTSIM_HERE);
    tensor.count = elements;
    return tensor;
  }
  template <typename T> CASTSIM_CALL LocalTensor<T> GetWithOffset(uint32_t elements, uint32_t byte) const {
    LocalTensor<T> tensor = get<T>(CASTSIM_HERE);
    tensor.address += byte;
    tensor.count = elements;
    return tensor;
  }
  template <typename T> CASTSIM_CALL LocalTensor<T> AllocTensor() const { return get<T>(CASTSIM_HERE); }
  template <typename T> void FreeTensor(const LocalTensor<T> &) {}
  uint32_t GetBufLen() const { return own_ ? uint32_t(own_->high - own_->low) : 0; }

 private:
  castsim::Stretch *own_ = nullptr;
  template <typename T> LocalTensor<T> get(const void *place) const {
    if (!castsim::in_buffer(Where)) castsim::refuse_cube(place, "a TBuf there");
    if (own_ == nullptr) castsim::refuse(place, "Get: InitBuffer has given the TBuf no bytes");
    return castsim::tensor_of<T>(own_, Where);
  }
};

template <TPosition Where, uint32_t Buffers = 4> class TBufPool;

namespace castsim_pipes {
// Addresses in the order of InitBuffer calls, each length rounded up to a block.
struct Room {
  long long next = 0, end = castsim::SCRATCH;
  int buffers = 0;
  castsim::Stretch *take(const void *place, int number, long long bytes) {
    const long long each = (bytes + 31) / 32 * 32;
    if (next + each * number > end)
      castsim::refuse(place, "InitBuffer: " + std::to_string(next + each * number) + " bytes of a buffer of " +
                                 std::to_string(end));
    if (buffers += number; buffers > castsim::MOST_BUFFERS_OF_A_PIPE)
      castsim::refuse(place, "InitBuffer: " + std::to_string(buffers) + " buffers; a pipe has 64");
    auto *block = new castsim::Stretch[size_t(number)];
    for (int i = 0; i < number; ++i, next += each) {
      block[i].low = next, block[i].high = next + each;
      castsim::stretches.push_back(block + i);
    }
    return block;
  }
  template <TPosition S, TPosition D, int32_t Depth, auto M>
  bool queue(const void *place, TQueBind<S, D, Depth, M> &own, int number, uint32_t bytes) {
    own.castsim_init(place, take(place, number, bytes), number);
    return true;
  }
};
}  // namespace castsim_pipes

#define CASTSIM_INIT_BUFFER(ROOM)                                                                                    \
  template <TPosition S, TPosition D, int32_t Depth, auto M>                                                         \
  CASTSIM_CALL bool InitBuffer(TQueBind<S, D, Depth, M> &queue, uint8_t number, uint32_t bytes) {                    \
    return ROOM.queue(CASTSIM_HERE, queue, number, bytes); }                                                         \
  template <TPosition W> CASTSIM_CALL bool InitBuffer(TBuf<W> &buffer, uint32_t bytes) {                             \
    return buffer.castsim_init(ROOM.take(CASTSIM_HERE, 1, bytes)), true; }
class TPipe {
 public:
  CASTSIM_CALL TPipe() { begin(CASTSIM_HERE); }
  CASTSIM_CALL ~TPipe() { finish(CASTSIM_HERE); }
  TPipe(const TPipe &) = delete;
  CASTSIM_CALL void Init() { room_ = {}; }
  CASTSIM_CALL void Destroy() { finish(CASTSIM_HERE); }
  CASTSIM_CALL void Reset() { castsim::wait_for_all(CASTSIM_HERE), room_.next = 0, room_.buffers = 0; }
  CASTSIM_INIT_BUFFER(room_)
  template <TPosition W, uint32_t B> CASTSIM_CALL bool InitBufPool(TBufPool<W, B> &pool, uint32_t bytes) {
    return pool.castsim_init(room_.take(CASTSIM_HERE, 1, bytes)), true;
  }
  template <TPosition W, uint32_t B, TPosition W2, uint32_t B2>
  bool InitBufPool(TBufPool<W, B> &pool, uint32_t, TBufPool<W2, B2> &shared) { return pool.room_ = shared.whole_, true; }
  template <HardEvent event> CASTSIM_CALL TEventID AllocEventID() { return TEventID(castsim::take_id(CASTSIM_HERE, event)); }
  CASTSIM_CALL TEventID AllocEventID(HardEvent event) { return TEventID(castsim::take_id(CASTSIM_HERE, event)); }
  template <HardEvent event> CASTSIM_CALL TEventID FetchEventID() {
    return TEventID(castsim::lowest_free(CASTSIM_HERE, event));
  }
  CASTSIM_CALL TEventID FetchEventID(HardEvent event) { return TEventID(castsim::lowest_free(CASTSIM_HERE, event)); }
  template <HardEvent event> void ReleaseEventID(TEventID id) { castsim::give_back(event, id); }
  void ReleaseEventID(HardEvent event, TEventID id) { castsim::give_back(event, id); }
  uint64_t GetBaseAddr(int8_t) const { return 0; }
  long long castsim_free() const { return room_.next; }

 private:
  castsim_pipes::Room room_;
  bool open_ = true;
  void begin(const void *place) {
    castsim::pipe_now = this;
    castsim::stretches.clear();
    castsim::events = {};
    castsim::atomic.clear();
    castsim::control(place, "norm");
    castsim::control(place, "mask", castsim::FULL, castsim::FULL);
    if (castsim::A5) castsim::control(place, "ctrl", 60, 1);
  }
  void finish(const void *place) {
    if (!open_) return;
    open_ = false;
    castsim::wait_for_all(place);
    castsim::barrier(place, PIPE_ALL);
  }
};
inline TPipe *GetTPipePtr() {
  if (castsim::pipe_now == nullptr) castsim::pipe_now = new TPipe();
  return castsim::pipe_now;
}
template <TPosition Where, uint32_t Buffers> class TBufPool {
 public:
  void castsim_init(castsim::Stretch *own) { room_.next = own->low, room_.end = own->high, whole_ = room_; }
  CASTSIM_CALL void Reset() { castsim::wait_for_all(CASTSIM_HERE), room_ = whole_; }
  CASTSIM_INIT_BUFFER(room_)
  template <TPosition W, uint32_t B> CASTSIM_CALL bool InitBufPool(TBufPool<W, B> &pool, uint32_t bytes) {
    return pool.castsim_init(room_.take(CASTSIM_HERE, 1, bytes)), true;
  }
  castsim_pipes::Room room_, whole_;
};
template <typename = void> class LocalMemAllocator {
 public:
  template <TPosition Where, typename T> CASTSIM_CALL LocalTensor<T> Alloc(uint32_t elements) {
    return castsim::tensor_of<T>(room_.take(CASTSIM_HERE, 1, LocalTensor<T>::bytes(elements)), Where);
  }
  template <typename T> CASTSIM_CALL LocalTensor<T> Alloc(uint32_t elements) {
    return castsim::tensor_of<T>(room_.take(CASTSIM_HERE, 1, LocalTensor<T>::bytes(elements)), TPosition::VECCALC);
  }
  uint32_t GetCurAddr() const { return uint32_t(room_.next); }

 private:
  castsim_pipes::Room room_;
};

template <HardEvent event> CASTSIM_CALL void SetFlag(int32_t id) { castsim::event_flag(CASTSIM_HERE, "set", event, id); }
template <HardEvent event> CASTSIM_CALL void WaitFlag(int32_t id) { castsim::event_flag(CASTSIM_HERE, "wait", event, id); }
template <pipe_t pipe> CASTSIM_CALL void PipeBarrier() { castsim::barrier(CASTSIM_HERE, pipe); }
template <pipe_t from, pipe_t to> struct TQueSync {
  CASTSIM_CALL void SetFlag(TEventID id) { castsim::flag(CASTSIM_HERE, "set", from, to, id); }
  CASTSIM_CALL void WaitFlag(TEventID id) { castsim::flag(CASTSIM_HERE, "wait", from, to, id); }
};

// The core.
inline int64_t GetBlockIdx() { return castsim::core.block * castsim::core.subs + castsim::core.sub; }
inline int64_t GetBlockNum() { return castsim::core.blocks; }
inline int64_t GetSubBlockIdx() { return castsim::core.sub; }
inline int64_t GetSubBlockNum() { return castsim::core.subs; }
inline int64_t GetTaskRation() { return castsim::core.subs; }
inline int64_t GetSystemCycle() { return 0; }
inline __attribute__((noinline)) void synchronise_all(const void *place) {
  if (castsim::core.blocks > 1)
    castsim::refuse(place, "SyncAll waits for " + std::to_string(castsim::core.blocks - 1) +
                               " other cores; castsim runs cores one by one (--block 0/1 runs it on one)");
  castsim::barrier(place, PIPE_ALL);
}
template <bool OnlyVector = true> CASTSIM_CALL void SyncAll() { synchronise_all(CASTSIM_HERE); }
template <bool OnlyVector = true, typename G, typename L, typename... N> CASTSIM_CALL void SyncAll(G &&, L &&, N...) {
  synchronise_all(CASTSIM_HERE);
}
template <typename T> T *GetUserWorkspace(T *workspace) { return workspace; }
template <typename T> void SetSysWorkspace(T *) {}
template <typename T> T *GetSysWorkSpacePtr(T *workspace = nullptr) { return workspace; }
}  // namespace AscendC

using AscendC::AIC;
using AscendC::AIV;
using AscendC::GetTPipePtr;
constexpr int g_coreType = AscendC::AIV;

#if __CCE_AICORE__ == 310
#include "castsim_ascendc_registers.hpp"
#else
#define __VEC_SCOPE__ castsim::refuse(castsim::here(), "__VEC_SCOPE__ works on vector registers, which A2/A3 lacks");
namespace AscendC::Reg {
template <typename... T> struct RegTensor {
  CASTSIM_CALL RegTensor() { castsim::refuse(CASTSIM_HERE, "RegTensor is a vector register, which A2/A3 lacks"); }
};
}  // namespace AscendC::Reg
namespace AscendC { namespace MicroAPI = Reg; using Reg::RegTensor; }
#endif
#include "castsim_ascendc_copies.hpp"
#include "castsim_ascendc_operations.hpp"
#include "castsim_ascendc_sequences.hpp"
#include "castsim_ascendc_functions.hpp"
#include "castsim_ascendc_tiling.hpp"
#include "castsim_ascendc_host.hpp"
