// Copies between global memory and the buffer: whole blocks, rows with gaps, padding, atomic stores.

namespace castsim {
struct Rows {  // `count` rows of `length` bytes, and the bytes from start to start; of padding, elements of one size
  long long count, length, far, near, left = 0, right = 0;
  bool pads = false;
  unsigned long long value = 0;
};
inline void transfer(const void *place, bool load, uintptr_t pointer, const char *element, const Local &tensor,
                     const Rows &rows) {
  settle_writes();
  const int buffer = buffer_of(pointer);
  if (buffer < 0) refuse(place, "accesses global memory outside all arguments: " + unlike(pointer));
  say("t", trail_of(place), load ? "load" : "store", buffer, (long long)pointer - (long long)base_of(buffer), element,
      joined("u", tensor.address, tensor.low, tensor.high), rows.count, rows.length, rows.far, rows.near, rows.left,
      rows.right, int(rows.pads), hexadecimal(rows.value), load || atomic.empty() ? "-" : atomic);
  end();
  if (load) windows.clear();
  else forget_buffer(buffer);
}
inline long long whole_blocks(const void *place, long long bytes) {
  if (bytes % 32)
    note(place, "DataCopy of " + std::to_string(bytes) + " bytes moves " + std::to_string(bytes / 32 * 32) +
                    ": whole blocks of 32 alone");
  return bytes / 32 * 32;
}
inline Rows in_blocks(const AscendC::DataCopyParams &given, bool load) {
  const long long length = given.blockLen * 32ll, src = length + given.srcStride * 32ll, dst = length + given.dstStride * 32ll;
  return {given.blockCount, length, load ? src : dst, load ? dst : src};
}
// The gap of global memory counts bytes, that of the buffer blocks, where every row begins on a block.
template <typename P> Rows in_bytes(const P &given, bool load, long long left = 0, long long right = 0) {
  const long long length = given.blockLen, row = (left + length + right + 31) / 32 * 32;
  const long long far = length + (load ? given.srcStride : given.dstStride);
  const long long near = row + (load ? given.dstStride : given.srcStride) * 32ll;
  return {given.blockCount, length, far, near};
}
inline void check_pad(const void *place, const Rows &rows, long long size) {
  if (rows.count > 4095) refuse(place, "DataCopyPad of " + std::to_string(rows.count) + " rows; at most 4095");
  if (rows.left * size > 32 || rows.right * size > 32) refuse(place, "DataCopyPad pads at most 32 bytes to the left and to the right");
}
template <typename T> void pad_load(const void *place, const AscendC::LocalTensor<T> &dst, const AscendC::GlobalTensor<T> &src,
                                    Rows rows, bool pads, long long left, long long right, unsigned long long value) {
  rows.left = left, rows.right = right, rows.pads = pads || left || right, rows.value = value;
  check_pad(place, rows, sizeof(T));
  transfer(place, true, src.address, Element<T>::name(), dst, rows);
}
}  // namespace castsim
namespace AscendC {
template <typename T> CASTSIM_CALL void DataCopy(const LocalTensor<T> &dst, const GlobalTensor<T> &src, uint32_t elements) {
  const long long bytes = castsim::whole_blocks(CASTSIM_HERE, LocalTensor<T>::bytes(elements));
  castsim::transfer(CASTSIM_HERE, true, src.address, castsim::Element<T>::name(), dst, {1, bytes, bytes, bytes});
}
template <typename T> CASTSIM_CALL void DataCopy(const GlobalTensor<T> &dst, const LocalTensor<T> &src, uint32_t elements) {
  const long long bytes = castsim::whole_blocks(CASTSIM_HERE, LocalTensor<T>::bytes(elements));
  castsim::transfer(CASTSIM_HERE, false, dst.address, castsim::Element<T>::name(), src, {1, bytes, bytes, bytes});
}
template <typename T>
CASTSIM_CALL void DataCopy(const LocalTensor<T> &dst, const GlobalTensor<T> &src, const DataCopyParams &given) {
  castsim::transfer(CASTSIM_HERE, true, src.address, castsim::Element<T>::name(), dst, castsim::in_blocks(given, true));
}
template <typename T>
CASTSIM_CALL void DataCopy(const GlobalTensor<T> &dst, const LocalTensor<T> &src, const DataCopyParams &given) {
  castsim::transfer(CASTSIM_HERE, false, dst.address, castsim::Element<T>::name(), src, castsim::in_blocks(given, false));
}
template <typename T> CASTSIM_CALL void DataCopyPad(const LocalTensor<T> &dst, const GlobalTensor<T> &src,
                                                    const DataCopyExtParams &given,
                                                    const DataCopyPadExtParams<std::type_identity_t<T>> &pad) {
  const long long left = pad.leftPadding, right = pad.rightPadding, size = sizeof(T);
  castsim::pad_load(CASTSIM_HERE, dst, src, castsim::in_bytes(given, true, left * size, right * size), pad.isPad, left,
                    right, castsim::code_of(pad.paddingValue));
}
template <typename T> CASTSIM_CALL void DataCopyPad(const LocalTensor<T> &dst, const GlobalTensor<T> &src,
                                                    const DataCopyParams &given, const DataCopyPadParams &pad) {
  const long long left = pad.leftPadding, right = pad.rightPadding, size = sizeof(T);
  castsim::pad_load(CASTSIM_HERE, dst, src, castsim::in_bytes(given, true, left * size, right * size), pad.isPad, left,
                    right, pad.paddingValue);
}
template <typename T>
CASTSIM_CALL void DataCopyPad(const GlobalTensor<T> &dst, const LocalTensor<T> &src, const DataCopyExtParams &given) {
  const castsim::Rows rows = castsim::in_bytes(given, false);
  castsim::check_pad(CASTSIM_HERE, rows, sizeof(T));
  castsim::transfer(CASTSIM_HERE, false, dst.address, castsim::Element<T>::name(), src, rows);
}
template <typename T>
CASTSIM_CALL void DataCopyPad(const GlobalTensor<T> &dst, const LocalTensor<T> &src, const DataCopyParams &given) {
  castsim::transfer(CASTSIM_HERE, false, dst.address, castsim::Element<T>::name(), src, castsim::in_bytes(given, false));
}
// The type of parameters is deduced, so that lists in braces are none of these.
template <typename D, typename S, typename P, typename... A>
  requires(castsim::is_tensor<D> && (std::is_same_v<P, Nd2NzParams> || std::is_same_v<P, Nz2NdParamsFull> || std::is_same_v<P, DataCopyCO12DstParams>))
CASTSIM_CALL void DataCopy(const D &, const S &, const P &, A &&...) {
  castsim::refuse(CASTSIM_HERE, "DataCopy between layouts of matrices (Nd2Nz and the like) is not modelled");
}
template <typename D, typename S> CASTSIM_CALL void DataCopy(const D &, const S &, const SliceInfo *, const SliceInfo *, uint32_t = 1) {
  castsim::refuse(CASTSIM_HERE, "DataCopy of slices (SliceInfo) is not modelled");
}
#define CASTSIM_ATOMIC(NAME, WORD) template <typename T> CASTSIM_CALL void NAME() { \
    castsim::atomic = std::string(WORD ",") + castsim::Element<T>::name(); }
CASTSIM_ATOMIC(SetAtomicAdd, "add") CASTSIM_ATOMIC(SetAtomicMax, "max") CASTSIM_ATOMIC(SetAtomicMin, "min")
CASTSIM_ATOMIC(SetAtomicType, "add")
inline void SetAtomicNone() { castsim::atomic.clear(); }
inline void DisableDmaAtomic() { castsim::atomic.clear(); }
}  // namespace AscendC
inline void set_atomic_none() { castsim::atomic.clear(); }
