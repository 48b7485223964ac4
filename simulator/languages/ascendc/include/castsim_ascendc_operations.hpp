// The calls on tensors: instructions, and the sequences of instructions that some of them are.
//
// Four families: with a count (count mode around one instruction), with a mask of low lanes, with two words of mask, and
// with what the mask register has (`isSetMask` false). Sequences differ from chip to chip where the library's do.

namespace castsim {
inline bool counts = false;           // the mask register is a count
inline bool register_mask = false;    // the kernel sets masks itself (SetVectorMask)
inline float scale = 1.0f;            // of SetDeqScale
inline void control(const void *place, const char *what, unsigned long long first, unsigned long long second) {
  if (!strcmp(what, "count") || !strcmp(what, "norm")) counts = *what == 'c';
  say("c", trail_of(place), what, hexadecimal(first), hexadecimal(second));
  end();
}
inline std::string operand(const Local &tensor, const char *element, long long block = 1, long long repeat = 8) {
  return joined(std::string("u,") + element, tensor.address, tensor.low, tensor.high, block, repeat);
}
template <typename T>
std::string operand(const AscendC::LocalTensor<T> &tensor, long long block = 1, long long repeat = 8) {
  return operand(tensor, Element<T>::name(), block, repeat);
}
// `name` is the call's, for messages; words are operands, the destination first, scalars and attributes.
inline void instruction(const void *place, const char *name, const char *mnemonic, long long repeats, const Words &words) {
  settle_writes();
  say("i", trail_of(place), name, mnemonic, repeats);
  for (const std::string &word : words) say(word);
  end();
  windows.clear();
}
inline void mask_words(const void *place, unsigned long long high, unsigned long long low) { control(place, "mask", high, low); }
inline void mask_lanes(const void *place, unsigned long long lanes) {
  if (counts) return control(place, "lanes", lanes);
  if (lanes > 128) refuse(place, "a mask of " + std::to_string(lanes) + " lanes; a repeat has at most 128");
  auto low = [](unsigned long long n) { return n >= 64 ? FULL : (1ull << n) - 1; };
  mask_words(place, lanes > 64 ? low(lanes - 64) : 0, low(lanes));
}
inline void full_mask(const void *place) { mask_words(place, FULL, FULL); }
template <typename Issue> void counted(const void *place, long long count, Issue issue) {
  if (count < 0) refuse(place, "a count of " + std::to_string(count) + " elements");
  control(place, "count");
  control(place, "lanes", (unsigned long long)count);
  issue();
  control(place, "norm");
  full_mask(place);
}
// The repeat stride of a count call: adjacent repeats of 256 bytes of the widest operand.
template <typename T, typename Widest> constexpr long long STEP = 8 * bits_per_element<T> / bits_per_element<Widest>;
template <typename A, typename B> using Wider = std::conditional_t<(bits_per_element<A> >= bits_per_element<B>), A, B>;
template <typename T> constexpr long long LANES = 2048 / bits_per_element<T>;  // of a repeat
template <typename T> constexpr long long IN_BLOCK = 256 / bits_per_element<T>;
inline void flag_now(const void *place, HardEvent event) {
  const int id = lowest_free(place, event);
  event_flag(place, "set", event, id);
  event_flag(place, "wait", event, id);
}
struct Mask {  // of a call: low lanes, two words, or what the register has
  unsigned long long high = 0, low = 0;
  enum { LOW, WORDS, REGISTER } kind = LOW;
  Mask(unsigned long long lanes, bool sets) : low(lanes), kind(sets ? LOW : REGISTER) {}
  Mask(const uint64_t words[], bool sets) : high(sets ? words[1] : 0), low(sets ? words[0] : 0), kind(sets ? WORDS : REGISTER) {}
  void set(const void *place) const {
    if (kind == LOW) mask_lanes(place, low);
    if (kind == WORDS) mask_words(place, high, low);
  }
};
}  // namespace castsim

namespace AscendC {
struct UnaryRepeatParams {
  uint16_t dstBlkStride = 1, srcBlkStride = 1;
  uint16_t dstRepStride = 8, srcRepStride = 8;
  bool halfBlock = false;
  UnaryRepeatParams() = default;
  UnaryRepeatParams(uint16_t db, uint16_t sb, uint16_t dr, uint16_t sr, bool half_block = false)
      : dstBlkStride(db), srcBlkStride(sb), dstRepStride(dr), srcRepStride(sr), halfBlock(half_block) {}
};
struct BinaryRepeatParams {
  uint8_t dstBlkStride = 1, src0BlkStride = 1, src1BlkStride = 1, dstRepStride = 8, src0RepStride = 8, src1RepStride = 8;
  uint32_t blockNumber = 8;
  BinaryRepeatParams() = default;
  BinaryRepeatParams(uint8_t db, uint8_t b0, uint8_t b1, uint8_t dr, uint8_t r0, uint8_t r1)
      : dstBlkStride(db), src0BlkStride(b0), src1BlkStride(b1), dstRepStride(dr), src0RepStride(r0), src1RepStride(r1) {}
};
struct CopyRepeatParams {
  uint16_t dstStride = 1, srcStride = 1, dstRepeatSize = 8, srcRepeatSize = 8;
  CopyRepeatParams() = default;
  CopyRepeatParams(uint16_t db, uint16_t sb, uint16_t dr, uint16_t sr)
      : dstStride(db), srcStride(sb), dstRepeatSize(dr), srcRepeatSize(sr) {}
};
struct BrcbRepeatParams {
  uint16_t dstBlkStride = 1, dstRepStride = 8;
  BrcbRepeatParams() = default;
  BrcbRepeatParams(uint16_t block, uint16_t repeat) : dstBlkStride(block), dstRepStride(repeat) {}
};
struct GatherRepeatParams {
  uint16_t dstBlkStride = 1, dstRepStride = 8;
  GatherRepeatParams() = default;
  GatherRepeatParams(uint16_t block, uint16_t repeat) : dstBlkStride(block), dstRepStride(repeat) {}
};
struct GatherMaskParams {
  uint8_t src0BlockStride = 1;
  uint16_t repeatTimes = 0, src0RepeatStride = 0;
  uint8_t src1RepeatStride = 0;
  GatherMaskParams() = default;
  GatherMaskParams(uint8_t block, uint16_t repeats, uint16_t step, uint8_t bits)
      : src0BlockStride(block), repeatTimes(repeats), src0RepeatStride(step), src1RepeatStride(bits) {}
};

// ------------------------------------------------------------------------------------------------ masks and modes
template <typename T = void, MaskMode mode = MaskMode::NORMAL> CASTSIM_CALL void SetVectorMask(uint64_t high, uint64_t low) {
  castsim::mask_words(CASTSIM_HERE, high, low);
}
template <typename T = void, MaskMode mode = MaskMode::NORMAL> CASTSIM_CALL void SetVectorMask(int32_t lanes) {
  if (mode == MaskMode::COUNTER) castsim::control(CASTSIM_HERE, "lanes", (unsigned long long)lanes);
  else castsim::mask_lanes(CASTSIM_HERE, (unsigned long long)lanes);
}
struct AscendCUtils {
  template <typename T, bool isSetMask = true> CASTSIM_CALL static void SetMask(const uint64_t &high, const uint64_t &low) {
    if (isSetMask) castsim::mask_words(CASTSIM_HERE, high, low);
  }
  template <typename T, bool isSetMask = true> CASTSIM_CALL static void SetMask(int32_t lanes) {
    if (isSetMask) castsim::mask_lanes(CASTSIM_HERE, (unsigned long long)lanes);
  }
  template <bool isSetMask = true> CASTSIM_CALL static void ResetMask() { if (isSetMask) castsim::full_mask(CASTSIM_HERE); }
  static constexpr int32_t GetC0Size() { return DEFAULT_C0_SIZE; }
};
CASTSIM_CALL inline void SetMaskCount() { castsim::control(CASTSIM_HERE, "count"); }
CASTSIM_CALL inline void SetMaskNorm() { castsim::control(CASTSIM_HERE, "norm"); }
CASTSIM_CALL inline void ResetMask() { castsim::full_mask(CASTSIM_HERE); }
#define CASTSIM_MASK_WORD(NAME, ...) } CASTSIM_CALL inline void NAME { __VA_ARGS__; } namespace AscendC {
CASTSIM_MASK_WORD(set_mask_count(), castsim::control(CASTSIM_HERE, "count"))
CASTSIM_MASK_WORD(set_mask_norm(), castsim::control(CASTSIM_HERE, "norm"))
CASTSIM_MASK_WORD(set_vector_mask(uint64_t high, uint64_t low), castsim::mask_words(CASTSIM_HERE, high, low))
CASTSIM_CALL inline void SetDeqScale(half value) {
  castsim::scale = float(value);
  castsim::control(CASTSIM_HERE, "deqscale", castsim::code_of(value));
}
template <typename... A> requires(sizeof...(A) > 1) CASTSIM_CALL void SetDeqScale(A &&...) {
  castsim::refuse(CASTSIM_HERE, "SetDeqScale with an offset sets the scale of CastDeq, which is not modelled");
}
CASTSIM_CALL inline void SetSaturationFlag(bool on) { castsim::control(CASTSIM_HERE, "ctrl", 48, !on); }
template <int8_t First, int8_t Last> CASTSIM_CALL void SetCtrlSpr(int64_t value) {
  for (int bit = First; bit <= Last; ++bit)
    castsim::control(CASTSIM_HERE, "ctrl", (unsigned long long)bit, (unsigned long long)(value >> (bit - First) & 1));
}

// ------------------------------------------------------------------------------------------------ element by element
// Lists with commas are in brackets.
#define CASTSIM_BARE(...) __VA_ARGS__
#define CASTSIM_TEMPLATE(...) template <__VA_ARGS__>
#define CASTSIM_MASKED(TEMPLATE, HEAD, BEFORE, AFTER, ...)                                                     \
  CASTSIM_TEMPLATE TEMPLATE CASTSIM_CALL void HEAD(CASTSIM_BARE BEFORE, uint64_t mask, uint8_t repeats, CASTSIM_BARE AFTER) { \
    const void *place = CASTSIM_HERE; castsim::Mask(mask, isSetMask).set(place); __VA_ARGS__ }                 \
  CASTSIM_TEMPLATE TEMPLATE CASTSIM_CALL void HEAD(CASTSIM_BARE BEFORE, const uint64_t mask[], uint8_t repeats, CASTSIM_BARE AFTER) { \
    const void *place = CASTSIM_HERE; castsim::Mask(mask, isSetMask).set(place); __VA_ARGS__ }
#define CASTSIM_T (typename T, bool isSetMask = true)
#define CASTSIM_TU (typename T, typename U, bool isSetMask = true)

#define CASTSIM_UNARY(NAME, MNEMONIC)                                                                          \
  template <typename T, bool isSetMask = true> CASTSIM_CALL void NAME(const LocalTensor<T> &dst, const LocalTensor<T> &src, const int32_t &count) { \
    const void *place = CASTSIM_HERE;                                                                          \
    castsim::counted(place, count, [&] {                                                                       \
      castsim::instruction(place, #NAME, MNEMONIC, 1, {castsim::operand(dst), castsim::operand(src)}); }); }   \
  CASTSIM_MASKED(CASTSIM_T, NAME, (const LocalTensor<T> &dst, const LocalTensor<T> &src), (const UnaryRepeatParams &p),                                                     \
                 castsim::instruction(place, #NAME, MNEMONIC, repeats,                                         \
                                      {castsim::operand(dst, p.dstBlkStride, p.dstRepStride),                  \
                                       castsim::operand(src, p.srcBlkStride, p.srcRepStride)});)
CASTSIM_UNARY(Exp, "vexp") CASTSIM_UNARY(Ln, "vln") CASTSIM_UNARY(Abs, "vabs") CASTSIM_UNARY(Sqrt, "vsqrt")
CASTSIM_UNARY(Rsqrt, "vrsqrt") CASTSIM_UNARY(Reciprocal, "vrec") CASTSIM_UNARY(Relu, "vrelu") CASTSIM_UNARY(Not, "vnot")
#undef CASTSIM_UNARY

#define CASTSIM_BINARY_OF(NAME, MNEMONIC, TEMPLATE, U)                                                         \
  CASTSIM_TEMPLATE TEMPLATE CASTSIM_CALL void NAME(const LocalTensor<T> &dst, const LocalTensor<U> &src0, const LocalTensor<U> &src1, \
                                  const int32_t &count) {                                                      \
    const void *place = CASTSIM_HERE;                                                                          \
    using W = castsim::Wider<T, U>;                                                                            \
    castsim::counted(place, count, [&] {                                                                       \
      castsim::instruction(place, #NAME, MNEMONIC, 1,                                                          \
                           {castsim::operand(dst, 1, castsim::STEP<T, W>), castsim::operand(src0, 1, castsim::STEP<U, W>), \
                            castsim::operand(src1, 1, castsim::STEP<U, W>)}); }); }                            \
  CASTSIM_MASKED(TEMPLATE, NAME,                                                                               \
                 (const LocalTensor<T> &dst, const LocalTensor<U> &src0, const LocalTensor<U> &src1),          \
                 (const BinaryRepeatParams &p),                                                   \
                 castsim::instruction(place, #NAME, MNEMONIC, repeats,                                         \
                                      {castsim::operand(dst, p.dstBlkStride, p.dstRepStride),                  \
                                       castsim::operand(src0, p.src0BlkStride, p.src0RepStride),               \
                                       castsim::operand(src1, p.src1BlkStride, p.src1RepStride)});)
#define CASTSIM_BINARY(NAME, MNEMONIC) CASTSIM_BINARY_OF(NAME, MNEMONIC, CASTSIM_T, T)
#define CASTSIM_BINARY_TU(NAME, MNEMONIC) CASTSIM_BINARY_OF(NAME, MNEMONIC, CASTSIM_TU, U)
CASTSIM_BINARY(Add, "vadd") CASTSIM_BINARY(Sub, "vsub") CASTSIM_BINARY(Mul, "vmul") CASTSIM_BINARY(Div, "vdiv")
CASTSIM_BINARY(Max, "vmax") CASTSIM_BINARY(Min, "vmin") CASTSIM_BINARY(And, "vand") CASTSIM_BINARY(Or, "vor")
CASTSIM_BINARY(AddRelu, "vaddrelu") CASTSIM_BINARY(SubRelu, "vsubrelu") CASTSIM_BINARY(FusedMulAdd, "vmadd")
CASTSIM_BINARY(FusedMulAddRelu, "vmaddrelu") CASTSIM_BINARY(Prelu, "vprelu")
CASTSIM_BINARY_TU(MulAddDst, "vmla") CASTSIM_BINARY_TU(AddReluCast, "vaddreluconv") CASTSIM_BINARY_TU(SubReluCast, "vsubreluconv")
#undef CASTSIM_BINARY_OF

// A scalar is converted to the type of the source as C++ does.
#define CASTSIM_SCALAR_OF(NAME, MNEMONIC, TEMPLATE, U, S)                                                      \
  CASTSIM_TEMPLATE TEMPLATE CASTSIM_CALL void NAME(const LocalTensor<T> &dst, const LocalTensor<U> &src, const std::type_identity_t<S> &scalar, \
                                  const int32_t &count) {                                                      \
    const void *place = CASTSIM_HERE;                                                                          \
    using W = castsim::Wider<T, U>;                                                                            \
    castsim::counted(place, count, [&] {                                                                       \
      castsim::instruction(place, #NAME, MNEMONIC, 1, {castsim::operand(dst, 1, castsim::STEP<T, W>),          \
                           castsim::operand(src, 1, castsim::STEP<U, W>), castsim::scalar<S>(scalar)}); }); }  \
  CASTSIM_MASKED(TEMPLATE, NAME,                                                                               \
                 (const LocalTensor<T> &dst, const LocalTensor<U> &src,               \
                 const std::type_identity_t<S> &scalar), (const UnaryRepeatParams &p),              \
                 castsim::instruction(place, #NAME, MNEMONIC, repeats,                                         \
                                      {castsim::operand(dst, p.dstBlkStride, p.dstRepStride),                  \
                                       castsim::operand(src, p.srcBlkStride, p.srcRepStride),                  \
                                       castsim::scalar<S>(scalar)});)
#define CASTSIM_SCALAR(NAME, MNEMONIC) CASTSIM_SCALAR_OF(NAME, MNEMONIC, CASTSIM_T, T, T)
CASTSIM_SCALAR(Adds, "vadds") CASTSIM_SCALAR(Muls, "vmuls") CASTSIM_SCALAR(Maxs, "vmaxs") CASTSIM_SCALAR(Mins, "vmins")
CASTSIM_SCALAR(LeakyRelu, "vlrelu") CASTSIM_SCALAR(ShiftLeft, "vshl") CASTSIM_SCALAR(ShiftRight, "vshr")
CASTSIM_SCALAR_OF(Axpy, "vaxpy", CASTSIM_TU, U, U)
#undef CASTSIM_SCALAR_OF
template <typename T, bool isSetMask = true, typename M> CASTSIM_CALL void ShiftRight(const LocalTensor<T> &dst, const LocalTensor<T> &src,
    const std::type_identity_t<T> &scalar, M mask, uint8_t repeats, const UnaryRepeatParams &p, bool rounds) {
  if (rounds) castsim::refuse(CASTSIM_HERE, "ShiftRight with roundEn is not modelled");
  castsim::Mask(mask, isSetMask).set(CASTSIM_HERE);
  castsim::instruction(CASTSIM_HERE, "ShiftRight", "vshr", repeats, {castsim::operand(dst, p.dstBlkStride, p.dstRepStride),
                       castsim::operand(src, p.srcBlkStride, p.srcRepStride), castsim::scalar<T>(scalar)});
}

template <typename T, bool isSetMask = true> CASTSIM_CALL void Duplicate(const LocalTensor<T> &dst, const std::type_identity_t<T> &scalar, const int32_t &count) {
  const void *place = CASTSIM_HERE;
  castsim::counted(place, count, [&] {
    castsim::instruction(place, "Duplicate", "vector_dup", 1, {castsim::operand(dst), castsim::scalar<T>(scalar)}); });
}
CASTSIM_MASKED(CASTSIM_T, Duplicate, (const LocalTensor<T> &dst, const std::type_identity_t<T> &scalar), (uint16_t block, uint8_t repeat),
               castsim::instruction(place, "Duplicate", "vector_dup", repeats,
                                    {castsim::operand(dst, block, repeat), castsim::scalar<T>(scalar)});)
CASTSIM_MASKED(CASTSIM_T, Copy, (const LocalTensor<T> &dst, const LocalTensor<T> &src), (const CopyRepeatParams &p),
               castsim::instruction(place, "Copy", "vcopy", repeats,
                                    {castsim::operand(dst, p.dstStride, p.dstRepeatSize),
                                     castsim::operand(src, p.srcStride, p.srcRepeatSize)});)

// Which instruction a mode is, the tables of castsim know; one that issues nothing is refused there.
template <typename T, typename U, bool isSetMask = true> CASTSIM_CALL void Cast(const LocalTensor<T> &dst, const LocalTensor<U> &src, const RoundMode &mode, const uint32_t count) {
  const void *place = CASTSIM_HERE;
  using W = castsim::Wider<T, U>;
  castsim::counted(place, count, [&] {
    castsim::instruction(place, "Cast", "cast", 1, {castsim::operand(dst, 1, castsim::STEP<T, W>),
                         castsim::operand(src, 1, castsim::STEP<U, W>), castsim::attribute("mode", (long long)mode)}); });
}
CASTSIM_MASKED(CASTSIM_TU, Cast, (const LocalTensor<T> &dst, const LocalTensor<U> &src,
               const RoundMode &mode), (const UnaryRepeatParams &p),
               castsim::instruction(place, "Cast", "cast", repeats,
                                    {castsim::operand(dst, p.dstBlkStride, p.dstRepStride),
                                     castsim::operand(src, p.srcBlkStride, p.srcRepStride),
                                     castsim::attribute("mode", (long long)mode)});)
// f32 from two i32: sum, to f32, three products that keep the scale in range, to f16, the positive part.
template <typename T, typename U> CASTSIM_CALL void AddDeqRelu(const LocalTensor<T> &dst, const LocalTensor<U> &src0,
                                                              const LocalTensor<U> &src1, const int32_t &count) {
  static_assert(std::is_same_v<T, half> && std::is_same_v<U, int32_t>, "AddDeqRelu makes half of int32_t");
  const void *place = CASTSIM_HERE;
  const LocalTensor<float> wide = src0.template ReinterpretCast<float>();
  const LocalTensor<half> zero = src1.template ReinterpretCast<half>();
  auto step = [&](const char *mnemonic, const castsim::Words &words) {
    castsim::counted(place, count, [&] { castsim::instruction(place, "AddDeqRelu", mnemonic, 1, words); });
    castsim::barrier(place, PIPE_V);
  };
  using castsim::operand;
  step("vadd", {operand(src0), operand(src0), operand(src1)});
  step("cast", {operand(wide), operand(src0), castsim::attribute("mode", 0ll)});
  for (const float factor : {0x1p-17f, castsim::scale, 0x1p17f})
    step("vmuls", {operand(wide), operand(wide), castsim::scalar<float>(factor)});
  step("cast", {operand(dst, 1, 4), operand(wide), castsim::attribute("mode", 0ll)});
  step("vector_dup", {operand(zero), castsim::scalar<half>(half(0))});
  step("vmax", {operand(dst), operand(dst), operand(zero)});
}
}  // namespace AscendC

// Operators between tensors: the count is that of the tensor on the left.
#define CASTSIM_OPERATOR(SIGN, MNEMONIC) namespace AscendC { template <typename T> \
  Sources<LocalTensor<T>, LocalTensor<T>> operator SIGN(const LocalTensor<T> &left, const LocalTensor<T> &right) { \
    return {left, right, MNEMONIC}; } }
CASTSIM_OPERATOR(+, "vadd") CASTSIM_OPERATOR(-, "vsub") CASTSIM_OPERATOR(*, "vmul") CASTSIM_OPERATOR(/, "vdiv")
CASTSIM_OPERATOR(&, "vand") CASTSIM_OPERATOR(|, "vor")
template <typename T> template <typename L, typename R> void AscendC::LocalTensor<T>::operator=(const Sources<L, R> &sources) {
  const void *place = CASTSIM_HERE;
  castsim::counted(place, count, [&] {
    castsim::instruction(place, "operator", sources.operation, 1,
                         {castsim::operand(*this), castsim::operand(sources.left), castsim::operand(sources.right)}); });
}

namespace AscendC {
// ------------------------------------------------------------------------------------------------ compare and select
namespace castsim_calls {
using castsim::operand;
inline const char *const COMPARED[] = {"lt", "gt", "eq", "le", "ge", "ne"};
inline std::string mnemonic(const char *stem, CMPMODE mode) { return std::string(stem) + COMPARED[int(mode)]; }
template <typename U> std::string bits(const LocalTensor<U> &tensor, long long repeat = 1) { return castsim::operand(tensor, "u8", 1, repeat); }

// On A2/A3 calls of 252 repeats, then the rest; what is below a repeat is not compared.
template <typename U, typename T, typename Other>
void compare(const void *place, const char *name, const LocalTensor<U> &dst, const LocalTensor<T> &src, const std::string &stem,
             long long count, Other other) {
  if (castsim::A5)
    return castsim::counted(place, count, [&] {
      castsim::instruction(place, name, stem.c_str(), 1, {bits(dst), operand(src), other(0)}); });
  castsim::full_mask(place);
  const long long lanes = castsim::LANES<T>, all = count / lanes;
  if (count % lanes)
    castsim::note(place, std::string(name) + " of " + std::to_string(count) + " elements compares " + std::to_string(all * lanes) +
                             " on A2/A3: whole repeats of 256 bytes alone");
  for (long long first = 0; first < all; first += 252) {
    LocalTensor<U> to = dst;
    to.address += first * lanes / 8;
    castsim::instruction(place, name, stem.c_str(), std::min(252ll, all - first),
                         {bits(to), operand(src[uint32_t(first * lanes)]), other(first * lanes)});
  }
}
// 32 elements at the library's scratch that `vsel` reads by way of the compare mask's address.
template <typename T> LocalTensor<T> scratch() {
  LocalTensor<T> tensor;
  tensor.address = tensor.low = castsim::SCRATCH, tensor.high = castsim::CAPACITY, tensor.count = 8192 / sizeof(T);
  return tensor;
}
template <typename T> void fill_scratch(const void *place, const char *name, T value, bool once_more) {
  castsim::control(place, "norm");
  castsim::mask_lanes(place, 32);
  castsim::instruction(place, name, "vector_dup", 1, {operand(scratch<T>()), castsim::scalar<T>(value)});
  castsim::barrier(place, PIPE_V);
  castsim::control(place, "cmpmask", (unsigned long long)castsim::SCRATCH);
  castsim::barrier(place, PIPE_V);
  if (once_more) castsim::barrier(place, PIPE_V);
}
template <typename T, typename U, typename Issue>
void select(const void *place, const LocalTensor<U> &mask, SELMODE mode, bool tensors, T scalar, Issue issue) {
  if (mode == SELMODE::VSEL_CMPMASK_SPR) {
    if (!tensors) castsim::refuse(place, "Select of a scalar takes SELMODE::VSEL_TENSOR_SCALAR_MODE");
    castsim::control(place, "cmpmask", (unsigned long long)mask.address);
    castsim::barrier(place, PIPE_V);
  } else if (tensors != (mode == SELMODE::VSEL_TENSOR_TENSOR_MODE)) {
    castsim::refuse(place, tensors ? "Select of two tensors takes VSEL_CMPMASK_SPR or VSEL_TENSOR_TENSOR_MODE"
                                   : "Select of a scalar takes SELMODE::VSEL_TENSOR_SCALAR_MODE");
  } else if (!castsim::A5) {
    if (tensors) fill_scratch<uint32_t>(place, "Select", uint32_t(mask.address), true);
    else fill_scratch<T>(place, "Select", scalar, false);
  }
  issue();
}
}  // namespace castsim_calls

template <typename T, typename U> CASTSIM_CALL void Compare(const LocalTensor<U> &dst, const LocalTensor<T> &src0,
                                                           const LocalTensor<T> &src1, CMPMODE mode, uint32_t count) {
  castsim_calls::compare(CASTSIM_HERE, "Compare", dst, src0, castsim_calls::mnemonic("vcmpv_", mode), count,
                         [&](long long first) { return castsim::operand(src1[uint32_t(first)]); });
}
CASTSIM_MASKED(CASTSIM_TU, Compare,
               (const LocalTensor<U> &dst, const LocalTensor<T> &src0, const LocalTensor<T> &src1, CMPMODE mode), (const BinaryRepeatParams &p),
               castsim::instruction(place, "Compare", castsim_calls::mnemonic("vcmpv_", mode).c_str(), repeats,
                                    {castsim_calls::bits(dst), castsim::operand(src0, p.src0BlkStride, p.src0RepStride),
                                     castsim::operand(src1, p.src1BlkStride, p.src1RepStride)});)
// The compare mask: castsim's has the bytes of an address, here of the library's scratch behind what Select fills.
namespace castsim_calls {
inline LocalTensor<uint8_t> compare_register() {
  LocalTensor<uint8_t> own = scratch<uint8_t>();
  own.address += 256;
  return own;
}
}  // namespace castsim_calls
#define CASTSIM_COMPARE_TO_REGISTER(MASK) template <typename T, bool isSetMask = true> CASTSIM_CALL void Compare(             \
    const LocalTensor<T> &src0, const LocalTensor<T> &src1, CMPMODE mode, MASK, const BinaryRepeatParams &p) {               \
  const void *place = CASTSIM_HERE;                                                                                          \
  if (castsim::A5) castsim::refuse(place, "Compare to the register is not modelled on the A5; give it a destination");       \
  castsim::Mask(mask, isSetMask).set(place);                                                                                 \
  castsim::instruction(place, "Compare", castsim_calls::mnemonic("vcmpv_", mode).c_str(), 1,                                 \
                       {castsim_calls::bits(castsim_calls::compare_register()), castsim::operand(src0, p.src0BlkStride, 8),  \
                        castsim::operand(src1, p.src1BlkStride, 8)});                                                        \
  castsim::barrier(place, PIPE_V);                                                                                           \
  castsim::control(place, "cmpmask", (unsigned long long)castsim_calls::compare_register().address); }
CASTSIM_COMPARE_TO_REGISTER(const uint64_t mask) CASTSIM_COMPARE_TO_REGISTER(const uint64_t mask[])
#define CASTSIM_COMPARES(NAME)                                                                                          \
  template <typename T, typename U, bool isSetMask = true> CASTSIM_CALL void NAME(const LocalTensor<U> &dst,            \
      const LocalTensor<T> &src, const std::type_identity_t<T> scalar, CMPMODE mode, uint32_t count) {                  \
    castsim_calls::compare(CASTSIM_HERE, #NAME, dst, src, castsim_calls::mnemonic("vcmpvs_", mode), count,              \
                           [&](long long) { return castsim::scalar<T>(scalar); }); }                                    \
  CASTSIM_MASKED(CASTSIM_TU, NAME,              \
                 (const LocalTensor<U> &dst, const LocalTensor<T> &src,                        \
                 const std::type_identity_t<T> scalar, CMPMODE mode), (const UnaryRepeatParams &p), \
                 castsim::instruction(place, #NAME, castsim_calls::mnemonic("vcmpvs_", mode).c_str(), repeats,          \
                                      {castsim_calls::bits(dst), castsim::operand(src, p.srcBlkStride, p.srcRepStride), \
                                       castsim::scalar<T>(scalar)});)
CASTSIM_COMPARES(CompareScalar) CASTSIM_COMPARES(Compares)
// The register is that of the last Compare without a destination, of 128 bits.
template <typename T> CASTSIM_CALL void GetCmpMask(const LocalTensor<T> &dst) {
  const void *place = CASTSIM_HERE;
  castsim::mask_lanes(place, 8);
  castsim::instruction(place, "GetCmpMask", "vcopy", 1, {castsim::operand(dst.template ReinterpretCast<uint16_t>()),
                       castsim::operand(castsim_calls::compare_register().template ReinterpretCast<uint16_t>())});
  castsim::full_mask(place);
}
template <typename T> CASTSIM_CALL void SetCmpMask(const LocalTensor<T> &mask) {
  castsim::control(CASTSIM_HERE, "cmpmask", (unsigned long long)mask.address);
}

namespace castsim_calls {
// Operands of `vsel`: the bits follow where they are read by element.
template <typename T, typename U> castsim::Words selected(const LocalTensor<T> &dst, const LocalTensor<U> &mask,
    const LocalTensor<T> &src0, const LocalTensor<T> *src1, T scalar, SELMODE mode, const BinaryRepeatParams &p) {
  castsim::Words words{operand(dst, p.dstBlkStride, p.dstRepStride), operand(src0, p.src0BlkStride, p.src0RepStride)};
  if (src1) words.push_back(operand(*src1, p.src1BlkStride, p.src1RepStride));
  else if (castsim::A5) words.push_back(castsim::scalar<T>(scalar));
  if (mode != SELMODE::VSEL_CMPMASK_SPR) words.push_back(bits(mask));
  else if (castsim::A5) words.push_back(castsim::attribute("one_mask", (long long)mask.address));
  return words;
}
}  // namespace castsim_calls
#define CASTSIM_SELECT(LAST, SRC1, SCALAR, TENSORS)                                                                  \
  template <typename T, typename U> CASTSIM_CALL void Select(const LocalTensor<T> &dst, const LocalTensor<U> &mask,  \
      const LocalTensor<T> &src0, LAST, SELMODE mode, uint32_t count) {                                              \
    const void *place = CASTSIM_HERE;                                                                                \
    castsim_calls::select<T>(place, mask, mode, TENSORS, SCALAR, [&] {                                               \
      castsim::counted(place, count, [&] {                                                                           \
        castsim::instruction(place, "Select", "vsel", 1,                                                             \
            castsim_calls::selected<T, U>(dst, mask, src0, SRC1, SCALAR, mode, {})); }); }); }                 \
  CASTSIM_SELECT_MASKED(LAST, SRC1, SCALAR, TENSORS, uint64_t lanes) CASTSIM_SELECT_MASKED(LAST, SRC1, SCALAR, TENSORS, const uint64_t lanes[])
#define CASTSIM_SELECT_MASKED(LAST, SRC1, SCALAR, TENSORS, MASK)                                                     \
  template <typename T, typename U, bool isSetMask = true> CASTSIM_CALL void Select(const LocalTensor<T> &dst,       \
      const LocalTensor<U> &mask, const LocalTensor<T> &src0, LAST, SELMODE mode, MASK, uint8_t repeats,             \
      const BinaryRepeatParams &p) {                                                                                 \
    const void *place = CASTSIM_HERE;                                                                                \
    castsim_calls::select<T>(place, mask, mode, TENSORS, SCALAR, [&] {                                               \
      castsim::Mask(lanes, isSetMask).set(place);                                                                    \
      castsim::instruction(place, "Select", "vsel", repeats,                                                         \
                           castsim_calls::selected<T, U>(dst, mask, src0, SRC1, SCALAR, mode, p)); }); }
CASTSIM_SELECT(const LocalTensor<T> &src1, &src1, T(0), true)
CASTSIM_SELECT(const std::type_identity_t<T> scalar, nullptr, scalar, false)
template <typename T, SELMODE mode> CASTSIM_CALL void Select(const LocalTensor<T> &dst, const LocalTensor<T> &src0,
                                                            const LocalTensor<T> &src1, int32_t repeats, const BinaryRepeatParams &p) {
  if (mode != SELMODE::VSEL_CMPMASK_SPR) castsim::refuse(CASTSIM_HERE, "Select without a mask tensor takes VSEL_CMPMASK_SPR");
  castsim::instruction(CASTSIM_HERE, "Select", "vsel", repeats,
                       {castsim::operand(dst, p.dstBlkStride, p.dstRepStride), castsim::operand(src0, p.src0BlkStride, p.src0RepStride),
                        castsim::operand(src1, p.src1BlkStride, p.src1RepStride)});
}
}  // namespace AscendC
