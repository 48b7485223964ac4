// Registers of the A5 as AscendC names them: AscendC::Reg, in older kernels AscendC::MicroAPI.
#pragma once

#include "castsim_intrinsics.hpp"

namespace AscendC {
namespace Reg {
using castsim::Issue;
using castsim::MASK_BITS;
using castsim::Vector;
struct DefaultType {};
struct RegTrait { int REG_NUM = 1; };
inline constexpr RegTrait RegTraitNumOne{1}, RegTraitNumTwo{2};
template <typename T = DefaultType, const RegTrait &trait = RegTraitNumOne> using RegTensor = Vector<T, trait.REG_NUM>;
using MaskReg = castsim::Predicate;
using UnalignReg = castsim::Alignment;
using UnalignRegForLoad = castsim::Alignment;
using UnalignRegForStore = castsim::Alignment;
struct AddrReg { long long bytes = 0; };

enum class MaskMergeMode { UNKNOWN, MERGING, ZEROING };
enum class RegLayout { UNKNOWN = -1, ZERO, ONE, TWO, THREE };
enum class SatMode { UNKNOWN = -1, NO_SAT, SAT };
enum class HighLowPart { LOWEST, HIGHEST };
enum class IndexOrder { INCREASE_ORDER, DECREASE_ORDER };
enum class PostLiteral { POST_MODE_NORMAL, POST_MODE_UPDATE };
enum class DataCopyMode { NORM, DATA_BLOCK_COPY };
enum class ReduceType { SUM, MAX, MIN };
enum class GatherMaskMode { NO_STORE_REG, STORE_REG };
enum class MemType { VEC_STORE, VEC_LOAD, SCALAR_STORE, SCALAR_LOAD, VEC_ALL, SCALAR_ALL };
enum class SpecialPurposeReg { AR };
enum class DivSpecificMode { INTRINSIC, PRECISION_1ULP_FTZ_TRUE, PRECISION_0ULP_FTZ_TRUE, PRECISION_0ULP_FTZ_FALSE, PRECISION_1ULP_FTZ_FALSE };
#define CASTSIM_NAMED(ENUM, WORDS, ...) enum class ENUM { __VA_ARGS__ }; inline const char *const WORDS[] = {CASTSIM_EACH(CASTSIM_QUOTED, __VA_ARGS__)};
#define CASTSIM_QUOTED(NAME) #NAME,
CASTSIM_NAMED(LoadDist, LOADS, DIST_NORM, DIST_BRC_B8, DIST_BRC_B16, DIST_BRC_B32, DIST_US_B8, DIST_US_B16, DIST_DS_B8,
              DIST_DS_B16, DIST_BDINTLV, DIST_DINTLV_B8, DIST_DINTLV_B16, DIST_DINTLV_B32, DIST_UNPACK_B8, DIST_UNPACK_B16,
              DIST_UNPACK_B32, DIST_BLK, DIST_E2B_B16, DIST_E2B_B32, DIST_UNPACK4_B8, DIST_SPLT4CHN_B8, DIST_SPLT2CHN_B8,
              DIST_SPLT2CHN_B16)
CASTSIM_NAMED(StoreDist, STORES, DIST_NORM, DIST_NORM_B8, DIST_NORM_B16, DIST_NORM_B32, DIST_FIRST_ELEMENT_B8,
              DIST_FIRST_ELEMENT_B16, DIST_FIRST_ELEMENT_B32, DIST_PACK_B16, DIST_PACK_B32, DIST_PACK_B64, DIST_INTLV_B8,
              DIST_INTLV_B16, DIST_INTLV_B32, DIST_PACK4_B32, DIST_MRG4CHN_B8, DIST_MRG2CHN_B8, DIST_MRG2CHN_B16)
CASTSIM_NAMED(MaskDist, MASKS, DIST_NORM, DIST_US, DIST_DS, DIST_PACK)
CASTSIM_NAMED(MaskPattern, PATTERNS, ALL, VL1, VL2, VL3, VL4, VL8, VL16, VL32, VL64, VL128, M3, M4, H, Q, ALLF)
struct CastTrait {
  RegLayout layoutMode = RegLayout::UNKNOWN;
  SatMode satMode = SatMode::UNKNOWN;
  MaskMergeMode mrgMode = MaskMergeMode::ZEROING;
  RoundMode roundMode = RoundMode::UNKNOWN;
};
inline constexpr CastTrait castTrait{};

// ------------------------------------------------------------------------------------------------ loads and stores
namespace castsim_registers {
inline const char *mode(const char *name) { return name + 5; }  // behind DIST_
template <typename T> T *moved(T *at, AddrReg by) { return (T *)((char *)at + by.bytes); }
template <typename T> T *after(T *&at, long long elements) { return at += elements, at - elements; }
template <typename T> T *after_blocks(T *&at, long long blocks) { return after(at, blocks * 32 / (long long)sizeof(T)); }
template <auto mode> constexpr bool merges(const void *place) {
  if constexpr (std::is_same_v<decltype(mode), MaskMergeMode>) return mode == MaskMergeMode::MERGING;
  else return castsim::refuse(place, "an algorithm other than the instruction's own (INTRINSIC) is not modelled"), false;
}
inline const char *half(HighLowPart part) { return part == HighLowPart::LOWEST ? "LOWER" : "HIGHER"; }
}  // namespace castsim_registers
#define CASTSIM_LOAD(NAME)                                                                                                    \
  template <typename T, LoadDist dist = LoadDist::DIST_NORM, typename U> CASTSIM_CALL void NAME(Vector<U> &dst, T *from) {    \
    castsim::load(CASTSIM_HERE, dst, from, castsim_registers::mode(LOADS[int(dist)])); }                                      \
  template <typename T, LoadDist dist = LoadDist::DIST_NORM, typename U> CASTSIM_CALL void NAME(Vector<U> &dst, T *from, AddrReg by) { \
    castsim::load(CASTSIM_HERE, dst, castsim_registers::moved(from, by), castsim_registers::mode(LOADS[int(dist)])); }        \
  template <typename T, PostLiteral post, LoadDist dist = LoadDist::DIST_NORM, typename U>                                    \
  CASTSIM_CALL void NAME(Vector<U> &dst, T *&from, int32_t step) {                                                            \
    castsim::load(CASTSIM_HERE, dst, castsim_registers::after(from, step), castsim_registers::mode(LOADS[int(dist)])); }      \
  template <typename T, LoadDist dist, typename U> CASTSIM_CALL void NAME(Vector<U> &one, Vector<U> &other, T *from) {        \
    castsim::load(CASTSIM_HERE, one, other, from, castsim_registers::mode(LOADS[int(dist)])); }                               \
  template <typename T, LoadDist dist, typename U> CASTSIM_CALL void NAME(Vector<U> &one, Vector<U> &other, T *from, AddrReg by) { \
    castsim::load(CASTSIM_HERE, one, other, castsim_registers::moved(from, by), castsim_registers::mode(LOADS[int(dist)])); } \
  template <typename T, PostLiteral post, LoadDist dist, typename U>                                                          \
  CASTSIM_CALL void NAME(Vector<U> &one, Vector<U> &other, T *&from, int32_t step) {                                          \
    castsim::load(CASTSIM_HERE, one, other, castsim_registers::after(from, step), castsim_registers::mode(LOADS[int(dist)])); } \
  template <typename T, DataCopyMode mode, typename U> CASTSIM_CALL void NAME(Vector<U> &dst, T *from, uint32_t blocks, MaskReg mask) { \
    castsim::load_blocks(CASTSIM_HERE, dst, from, blocks, mask); }                                                            \
  template <typename T, DataCopyMode mode, PostLiteral post, typename U>                                                      \
  CASTSIM_CALL void NAME(Vector<U> &dst, T *&from, uint32_t blocks, uint32_t step, MaskReg mask) {                            \
    castsim::load_blocks(CASTSIM_HERE, dst, castsim_registers::after_blocks(from, step), blocks, mask); }                     \
  template <typename T, MaskDist dist = MaskDist::DIST_NORM> CASTSIM_CALL void NAME(MaskReg &dst, T *from) {                  \
    Issue(CASTSIM_HERE, "plds").add(castsim::Memory<T>{from}).add(castsim::dist(castsim_registers::mode(MASKS[int(dist)]))).makes(dst, MASK_BITS<T>); } \
  template <typename T, MaskDist dist = MaskDist::DIST_NORM> CASTSIM_CALL void NAME(MaskReg &dst, T *from, AddrReg by) {      \
    Issue(CASTSIM_HERE, "plds").add(castsim::Memory<T>{castsim_registers::moved(from, by)}).add(castsim::dist(castsim_registers::mode(MASKS[int(dist)]))).makes(dst, MASK_BITS<T>); } \
  template <typename T, PostLiteral post, MaskDist dist = MaskDist::DIST_NORM> CASTSIM_CALL void NAME(MaskReg &dst, T *&from, int32_t step) { \
    Issue(CASTSIM_HERE, "plds").add(castsim::Memory<T>{castsim_registers::after(from, step)}).add(castsim::dist(castsim_registers::mode(MASKS[int(dist)]))).makes(dst, MASK_BITS<T>); }
CASTSIM_LOAD(LoadAlign) CASTSIM_LOAD(DataCopy)
#define CASTSIM_STORE(NAME)                                                                                                   \
  template <typename T, StoreDist dist = StoreDist::DIST_NORM, typename U> CASTSIM_CALL void NAME(T *to, const Vector<U> &src, MaskReg mask) { \
    castsim::store(CASTSIM_HERE, to, src, mask, castsim_registers::mode(STORES[int(dist)])); }                                \
  template <typename T, StoreDist dist = StoreDist::DIST_NORM, typename U>                                                    \
  CASTSIM_CALL void NAME(T *to, const Vector<U> &src, AddrReg by, MaskReg mask) {                                             \
    castsim::store(CASTSIM_HERE, castsim_registers::moved(to, by), src, mask, castsim_registers::mode(STORES[int(dist)])); }  \
  template <typename T, PostLiteral post, StoreDist dist = StoreDist::DIST_NORM, typename U>                                  \
  CASTSIM_CALL void NAME(T *&to, const Vector<U> &src, int32_t step, MaskReg mask) {                                          \
    castsim::store(CASTSIM_HERE, castsim_registers::after(to, step), src, mask, castsim_registers::mode(STORES[int(dist)])); } \
  template <typename T, StoreDist dist, typename U> CASTSIM_CALL void NAME(T *to, const Vector<U> &one, const Vector<U> &other, MaskReg mask) { \
    castsim::store(CASTSIM_HERE, to, one, other, mask, castsim_registers::mode(STORES[int(dist)])); }                         \
  template <typename T, StoreDist dist, typename U>                                                                           \
  CASTSIM_CALL void NAME(T *to, const Vector<U> &one, const Vector<U> &other, AddrReg by, MaskReg mask) {                     \
    castsim::store(CASTSIM_HERE, castsim_registers::moved(to, by), one, other, mask, castsim_registers::mode(STORES[int(dist)])); } \
  template <typename T, DataCopyMode mode, typename U> CASTSIM_CALL void NAME(T *to, const Vector<U> &src, uint32_t blocks, MaskReg mask) { \
    castsim::store_blocks(CASTSIM_HERE, to, src, blocks, mask); }                                                             \
  template <typename T, DataCopyMode mode, PostLiteral post, typename U>                                                      \
  CASTSIM_CALL void NAME(T *&to, const Vector<U> &src, uint32_t blocks, uint32_t step, MaskReg mask) {                        \
    castsim::store_blocks(CASTSIM_HERE, castsim_registers::after_blocks(to, step), src, blocks, mask); }                      \
  template <typename T, MaskDist dist = MaskDist::DIST_NORM> CASTSIM_CALL void NAME(T *to, MaskReg mask) {                    \
    Issue(CASTSIM_HERE, "psts").add(mask).add(castsim::Memory<T>{to}).add(castsim::dist(castsim_registers::mode(MASKS[int(dist)]))); } \
  template <typename T, MaskDist dist = MaskDist::DIST_NORM> CASTSIM_CALL void NAME(T *to, MaskReg mask, AddrReg by) {        \
    Issue(CASTSIM_HERE, "psts").add(mask).add(castsim::Memory<T>{castsim_registers::moved(to, by)}).add(castsim::dist(castsim_registers::mode(MASKS[int(dist)]))); } \
  template <typename T, PostLiteral post, MaskDist dist = MaskDist::DIST_NORM> CASTSIM_CALL void NAME(T *&to, MaskReg mask, int32_t step) { \
    Issue(CASTSIM_HERE, "psts").add(mask).add(castsim::Memory<T>{castsim_registers::after(to, step)}).add(castsim::dist(castsim_registers::mode(MASKS[int(dist)]))); }
CASTSIM_STORE(StoreAlign) CASTSIM_STORE(DataCopy)
#define CASTSIM_UNALIGNED(LOAD, BEFORE, STORE, AFTER)                                                                         \
  template <typename T> CASTSIM_CALL void BEFORE(UnalignReg &state, T *from) { Issue(CASTSIM_HERE, "vldas").add(castsim::exactly(from)).makes(state); } \
  template <typename T, typename U> CASTSIM_CALL void LOAD(Vector<U> &dst, UnalignReg &state, T *from) {                      \
    castsim::load_unaligned(CASTSIM_HERE, dst, state, from); }                                                                \
  template <typename T, PostLiteral post = PostLiteral::POST_MODE_UPDATE, typename U>                                         \
  CASTSIM_CALL void LOAD(Vector<U> &dst, UnalignReg &state, T *&from, uint32_t step) {                                        \
    castsim::load_unaligned(CASTSIM_HERE, dst, state, castsim_registers::after(from, step)); }                                \
  template <typename T, PostLiteral post = PostLiteral::POST_MODE_UPDATE, typename U>                                         \
  CASTSIM_CALL void STORE(T *&to, const Vector<U> &src, UnalignReg &state, uint32_t count) {                                  \
    castsim::store_unaligned(CASTSIM_HERE, castsim_registers::after(to, count), src, state, count); }                         \
  template <typename T, PostLiteral post = PostLiteral::POST_MODE_UPDATE, typename U>                                         \
  CASTSIM_CALL void STORE(T *to, const Vector<U> &src, UnalignReg &state) { castsim::store_unaligned(CASTSIM_HERE, to, src, state); } \
  template <typename T, PostLiteral post = PostLiteral::POST_MODE_UPDATE> CASTSIM_CALL void AFTER(T *to, UnalignReg &state, int32_t step) { \
    Issue(CASTSIM_HERE, "vstas").add(state).add(castsim::exactly(to)).add(castsim::Number{step, "i32"}); }                    \
  template <typename T, PostLiteral post = PostLiteral::POST_MODE_UPDATE> CASTSIM_CALL void AFTER(T *to, UnalignReg &state) { \
    Issue(CASTSIM_HERE, "vstar").add(state).add(castsim::exactly(to)); }
CASTSIM_UNALIGNED(LoadUnAlign, LoadUnAlignPre, StoreUnAlign, StoreUnAlignPost)
CASTSIM_UNALIGNED(DataCopyUnAlign, DataCopyUnAlignPre, DataCopyUnAlign, DataCopyUnAlignPost)
// An index and its stride in elements, up to four of them.
template <typename T, typename... N> AddrReg CreateAddrReg(N... given) {
  const long long numbers[] = {(long long)given...};
  AddrReg made;
  for (size_t at = 0; at + 1 < sizeof...(N); at += 2) made.bytes += numbers[at] * numbers[at + 1] * (long long)sizeof(T);
  return made;
}
#define CASTSIM_GATHERS(GATHER, BLOCKS, SCATTER)                                                                              \
  template <typename T, typename U, typename I> CASTSIM_CALL void GATHER(Vector<U> &dst, T *from, const Vector<I> &index, MaskReg mask) { \
    Issue(CASTSIM_HERE, "vgather2").add(castsim::exactly(from)).add(index).add(mask).makes(dst); }                            \
  template <typename T, typename U, typename I> CASTSIM_CALL void BLOCKS(Vector<U> &dst, T *from, const Vector<I> &index, MaskReg mask) { \
    Issue(CASTSIM_HERE, "vgatherb").add(castsim::exactly(from)).add(index).masks(MASK_BITS<U>).add(mask).makes(dst); }        \
  template <typename T, typename U, typename I> CASTSIM_CALL void SCATTER(T *to, const Vector<U> &src, const Vector<I> &index, MaskReg mask) { \
    Issue(CASTSIM_HERE, "vscatter").add(src).add(castsim::exactly(to)).add(index).add(mask); }
CASTSIM_GATHERS(Gather, GatherB, Scatter) CASTSIM_GATHERS(DataCopyGather, DataCopyGatherB, DataCopyScatter)
template <typename U, typename I> CASTSIM_CALL void Gather(Vector<U> &dst, const Vector<U> &src, const Vector<I> &index) {
  const Vector<U> own = src;
  Issue(CASTSIM_HERE, "vselr").add(own).add(index).makes(dst);
}

// ------------------------------------------------------------------------------------------------ masks
template <typename T, const RegTrait &trait = RegTraitNumOne> CASTSIM_CALL MaskReg UpdateMask(uint32_t &count) {
  if (sizeof(T) > 4) castsim::refuse(CASTSIM_HERE, "UpdateMask of elements of 64 bits is not modelled");
  const MaskReg mask = castsim::count_mask(CASTSIM_HERE, MASK_BITS<T>, count);
  return count = uint32_t(castsim::lanes_left<T>(count)), mask;
}
template <typename T, MaskPattern pattern = MaskPattern::ALL, const RegTrait &trait = RegTraitNumOne> CASTSIM_CALL MaskReg CreateMask() {
  if (sizeof(T) > 4 && pattern != MaskPattern::ALL) castsim::refuse(CASTSIM_HERE, "CreateMask of elements of 64 bits is not modelled");
  return castsim::pattern_mask(CASTSIM_HERE, MASK_BITS<T>, (std::string("PAT_") + PATTERNS[int(pattern)]).c_str());
}
#define CASTSIM_MASKS(NAME, OLDER, MNEMONIC) \
  CASTSIM_CALL inline void NAME(MaskReg &dst, const MaskReg &a, const MaskReg &b, const MaskReg &mask) { \
    dst = castsim::masks(CASTSIM_HERE, MNEMONIC, a.bits, a, b, mask); } \
  CASTSIM_CALL inline void OLDER(MaskReg &dst, const MaskReg &a, const MaskReg &b, const MaskReg &mask) { \
    dst = castsim::masks(CASTSIM_HERE, MNEMONIC, a.bits, a, b, mask); }
CASTSIM_MASKS(And, MaskAnd, "pand") CASTSIM_MASKS(Or, MaskOr, "por") CASTSIM_MASKS(Xor, MaskXor, "pxor") CASTSIM_MASKS(Select, MaskSel, "psel")
#define CASTSIM_MASK(NAME, MNEMONIC, ...) CASTSIM_CALL inline void NAME(MaskReg &dst, const MaskReg &a, const MaskReg &mask) { \
    dst = castsim::masks(CASTSIM_HERE, MNEMONIC, a.bits, a, __VA_ARGS__); }
CASTSIM_MASK(Not, "pnot", mask) CASTSIM_MASK(MaskNot, "pnot", mask) CASTSIM_MASK(Move, "pand", a, mask) CASTSIM_MASK(MaskMov, "pand", a, mask)
inline void Move(MaskReg &dst, const MaskReg &a) { dst = a; }
inline void MaskMov(MaskReg &dst, const MaskReg &a) { dst = a; }
#define CASTSIM_HALVES(NAME, MNEMONIC, BITS) template <HighLowPart part = HighLowPart::LOWEST> CASTSIM_CALL void NAME(MaskReg &dst, const MaskReg &src) { \
    const MaskReg own = src; \
    Issue(CASTSIM_HERE, MNEMONIC).masks(own.bits).add(own).add(castsim::Word{"half", castsim_registers::half(part)}).makes(dst, BITS); }
CASTSIM_HALVES(Pack, "ppack", own.bits / 2) CASTSIM_HALVES(MaskPack, "ppack", own.bits / 2)
CASTSIM_HALVES(UnPack, "punpack", own.bits * 2) CASTSIM_HALVES(MaskUnPack, "punpack", own.bits * 2)
#define CASTSIM_PAIRED(NAME, MNEMONIC) template <typename T> CASTSIM_CALL void NAME(MaskReg &one, MaskReg &other, const MaskReg &a, const MaskReg &b) { \
    constexpr int bits = MASK_BITS<T>; const MaskReg left = a, right = b; \
    Issue(CASTSIM_HERE, MNEMONIC "_b" + std::to_string(bits)).masks(bits).add(left).add(right).makes(one, bits).makes(other, bits); }
CASTSIM_PAIRED(Interleave, "pintlv") CASTSIM_PAIRED(MaskInterleave, "pintlv") CASTSIM_PAIRED(DeInterleave, "pdintlv") CASTSIM_PAIRED(MaskDeInterleave, "pdintlv")
template <typename T = DefaultType, CMPMODE mode = CMPMODE::EQ, typename U>
CASTSIM_CALL void Compare(MaskReg &dst, const Vector<U> &a, const Vector<U> &b, const MaskReg &mask) {
  dst = castsim::masks(CASTSIM_HERE, "vcmp", MASK_BITS<U>, a, b, mask, castsim::Word{"cmp", castsim::COMPARISONS[int(mode)]});
}
#define CASTSIM_WITH_SCALAR(NAME) template <typename T = DefaultType, CMPMODE mode = CMPMODE::EQ, typename U, typename S> \
  CASTSIM_CALL void NAME(MaskReg &dst, const Vector<U> &a, S scalar, const MaskReg &mask) { const MaskReg own = mask; \
    Issue(CASTSIM_HERE, "vcmps").add(a).template scalar_of<U>(scalar).add(own).add(castsim::Word{"cmp", castsim::COMPARISONS[int(mode)]}).makes(dst, MASK_BITS<U>); }
CASTSIM_WITH_SCALAR(Compares) CASTSIM_WITH_SCALAR(CompareScalar)

// ------------------------------------------------------------------------------------------------ lanes
#define CASTSIM_HEAD template <typename T = DefaultType, auto mode = MaskMergeMode::ZEROING, typename U
#define CASTSIM_MERGES castsim_registers::merges<mode>(CASTSIM_HERE)
#define CASTSIM_REG_UNARY(NAME, MNEMONIC) CASTSIM_HEAD> CASTSIM_CALL void NAME(Vector<U> &dst, const Vector<U> &src, const MaskReg &mask) { \
    castsim::lanes(CASTSIM_HERE, MNEMONIC, dst, CASTSIM_MERGES, src, mask); }
CASTSIM_REG_UNARY(Abs, "vabs") CASTSIM_REG_UNARY(Exp, "vexp") CASTSIM_REG_UNARY(Ln, "vln") CASTSIM_REG_UNARY(Log, "vln")
CASTSIM_REG_UNARY(Neg, "vneg") CASTSIM_REG_UNARY(Not, "vnot") CASTSIM_REG_UNARY(Relu, "vrelu") CASTSIM_REG_UNARY(Sqrt, "vsqrt")
CASTSIM_REG_UNARY(Move, "vmov") CASTSIM_REG_UNARY(Copy, "vmov") CASTSIM_REG_UNARY(PairReduceSum, "vcpadd")
#define CASTSIM_REG_BINARY(NAME, MNEMONIC) CASTSIM_HEAD, typename V> CASTSIM_CALL void NAME(Vector<U> &dst, const Vector<U> &a, const Vector<V> &b, const MaskReg &mask) { \
    castsim::lanes(CASTSIM_HERE, MNEMONIC, dst, CASTSIM_MERGES, a, b, mask); }
CASTSIM_REG_BINARY(Add, "vadd") CASTSIM_REG_BINARY(Sub, "vsub") CASTSIM_REG_BINARY(Mul, "vmul") CASTSIM_REG_BINARY(Div, "vdiv")
CASTSIM_REG_BINARY(Max, "vmax") CASTSIM_REG_BINARY(Min, "vmin") CASTSIM_REG_BINARY(And, "vand") CASTSIM_REG_BINARY(Or, "vor")
CASTSIM_REG_BINARY(Xor, "vxor") CASTSIM_REG_BINARY(Prelu, "vprelu") CASTSIM_REG_BINARY(ShiftLeft, "vshl") CASTSIM_REG_BINARY(ShiftRight, "vshr")
#define CASTSIM_REG_SCALAR(NAME, MNEMONIC) CASTSIM_HEAD, typename S> requires(std::is_convertible_v<S, U>) \
  CASTSIM_CALL void NAME(Vector<U> &dst, const Vector<U> &src, S scalar, const MaskReg &mask) { \
    castsim::lanes(CASTSIM_HERE, MNEMONIC, dst, CASTSIM_MERGES, src, U(scalar), mask); }
CASTSIM_REG_SCALAR(Adds, "vadds") CASTSIM_REG_SCALAR(Muls, "vmuls") CASTSIM_REG_SCALAR(Maxs, "vmaxs") CASTSIM_REG_SCALAR(Mins, "vmins")
CASTSIM_REG_SCALAR(LeakyRelu, "vlrelu")
#define CASTSIM_REG_SHIFT(NAME, MNEMONIC) CASTSIM_HEAD> CASTSIM_CALL void NAME(Vector<U> &dst, const Vector<U> &src, int16_t by, const MaskReg &mask) { \
    castsim::lanes(CASTSIM_HERE, MNEMONIC, dst, CASTSIM_MERGES, src, castsim::Number{by, "i16"}, mask); }
CASTSIM_REG_SHIFT(ShiftLefts, "vshls") CASTSIM_REG_SHIFT(ShiftRights, "vshrs")
#define CASTSIM_REG_OWN(NAME, MNEMONIC) CASTSIM_HEAD> CASTSIM_CALL void NAME(Vector<U> &dst, const Vector<U> &a, const Vector<U> &b, const MaskReg &mask) { \
    castsim::lanes(CASTSIM_HERE, MNEMONIC, dst, CASTSIM_MERGES, Vector<U>(dst), a, b, mask); }
CASTSIM_REG_OWN(MulAddDst, "vmula") CASTSIM_REG_OWN(MulDstAdd, "vmadd") CASTSIM_REG_OWN(FusedMulDstAdd, "vmadd")
CASTSIM_HEAD, typename S> CASTSIM_CALL void Axpy(Vector<U> &dst, const Vector<U> &src, S scalar, const MaskReg &mask) {
  castsim::lanes(CASTSIM_HERE, "vaxpy", dst, CASTSIM_MERGES, src, Vector<U>(dst), U(scalar), mask);
}
template <typename U> CASTSIM_CALL void Move(Vector<U> &dst, const Vector<U> &src) { castsim::lanes(CASTSIM_HERE, "vmov", dst, false, src); }
template <typename U> CASTSIM_CALL void Copy(Vector<U> &dst, const Vector<U> &src) { castsim::lanes(CASTSIM_HERE, "vmov", dst, false, src); }
template <typename U> CASTSIM_CALL void Select(Vector<U> &dst, const Vector<U> &a, const Vector<U> &b, const MaskReg &mask) {
  castsim::lanes(CASTSIM_HERE, "vsel", dst, false, a, b, mask);
}
template <typename T = DefaultType, typename U, typename S> requires(std::is_convertible_v<S, U>) CASTSIM_CALL void Duplicate(Vector<U> &dst, S scalar) {
  castsim::lanes(CASTSIM_HERE, "vbr", dst, false, U(scalar));
}
CASTSIM_HEAD, typename S> requires(std::is_convertible_v<S, U>) CASTSIM_CALL void Duplicate(Vector<U> &dst, S scalar, const MaskReg &mask) {
  castsim::lanes(CASTSIM_HERE, "vdup", dst, CASTSIM_MERGES, U(scalar), mask);
}
template <typename T = DefaultType, HighLowPart part = HighLowPart::LOWEST, auto mode = MaskMergeMode::ZEROING, typename U>
CASTSIM_CALL void Duplicate(Vector<U> &dst, const Vector<U> &src, const MaskReg &mask) {
  castsim::lanes(CASTSIM_HERE, "vdup", dst, CASTSIM_MERGES, src, mask, castsim::Word{"position", part == HighLowPart::LOWEST ? "LOWEST" : "HIGHEST"});
}
template <typename T = DefaultType, IndexOrder order = IndexOrder::INCREASE_ORDER, typename U, typename S> CASTSIM_CALL void Arange(Vector<U> &dst, S first) {
  using Signed = std::conditional_t<std::is_integral_v<U>, std::make_signed<std::conditional_t<std::is_integral_v<U>, U, int>>, std::type_identity<U>>::type;
  Issue(CASTSIM_HERE, "vci").template scalar_of<Signed>(first).add(castsim::Word{"order", order == IndexOrder::INCREASE_ORDER ? "ASC" : "DESC"})
      .makes(dst, castsim::Element<Signed>::name());
}
// Which words a pair takes, castsim's table of conversions knows.
template <typename T = DefaultType, typename S = DefaultType, CastTrait trait = castTrait, typename U, typename V>
CASTSIM_CALL void Cast(Vector<U> &dst, const Vector<V> &src, const MaskReg &mask) {
  const std::string mode = std::to_string(int(trait.roundMode)), layout = std::to_string(int(trait.layoutMode)), sat = std::to_string(int(trait.satMode));
  castsim::lanes(CASTSIM_HERE, "vcvt", dst, trait.mrgMode == MaskMergeMode::MERGING, src, mask, castsim::Word{"mode", mode.c_str()},
                 castsim::Word{"layout", layout.c_str()}, castsim::Word{"saturates", sat.c_str()});
}
template <typename T = DefaultType, RoundMode rounding = RoundMode::CAST_RINT, auto mode = MaskMergeMode::ZEROING, typename U>
CASTSIM_CALL void Truncate(Vector<U> &dst, const Vector<U> &src, const MaskReg &mask) {
  castsim::lanes(CASTSIM_HERE, "vtrc", dst, CASTSIM_MERGES, src, mask, castsim::Word{"mode", std::to_string(int(rounding)).c_str()});
}
#define CASTSIM_EXP_SUB(NAME) template <typename T = DefaultType, typename S = DefaultType, RegLayout layout = RegLayout::ZERO, auto mode = MaskMergeMode::ZEROING, typename V> \
  CASTSIM_CALL void NAME(Vector<float> &dst, const Vector<V> &a, const Vector<V> &b, const MaskReg &mask) { \
    castsim::lanes(CASTSIM_HERE, "vexpdif", dst, CASTSIM_MERGES, a, b, mask, castsim::Word{"part", layout == RegLayout::ONE ? "ODD" : "EVEN"}); }
CASTSIM_EXP_SUB(ExpSub) CASTSIM_EXP_SUB(FusedExpSub)
template <typename T = DefaultType, typename S = DefaultType, RegLayout layout = RegLayout::ZERO, auto mode = MaskMergeMode::ZEROING, typename N>
CASTSIM_CALL void MulsCast(Vector<half> &dst, const Vector<float> &src, N scalar, const MaskReg &mask) {
  const MaskReg own = mask;
  if (CASTSIM_MERGES) castsim::refuse(CASTSIM_HERE, "MulsCast that merges is not modelled");
  Issue(CASTSIM_HERE, "vmulscvt").add(src).template scalar_of<float>(float(scalar)).add(own).add(castsim::Word{"part", layout == RegLayout::ONE ? "ODD" : "EVEN"})
      .add(castsim::Word{"rnd", "R"}).add(castsim::Word{"sat", "NOSAT"}).makes(dst);
}
#define CASTSIM_REG_TWO(NAME, MNEMONIC) template <typename U> CASTSIM_CALL void NAME(Vector<U> &one, Vector<U> &other, const Vector<U> &a, const Vector<U> &b) { \
    const Vector<U> left = a, right = b; \
    Issue(CASTSIM_HERE, MNEMONIC).add(left).add(right).makes(one).makes(other); }
CASTSIM_REG_TWO(Interleave, "vintlv") CASTSIM_REG_TWO(DeInterleave, "vdintlv")
template <typename U> CASTSIM_CALL void Mull(Vector<U> &low, Vector<U> &high, const Vector<U> &a, const Vector<U> &b, const MaskReg &mask) {
  const Vector<U> left = a, right = b;
  Issue(CASTSIM_HERE, "vmull").add(left).add(right).add(mask).makes(low).makes(high);
}
#define CASTSIM_CARRY(NAME, MNEMONIC) template <typename T = DefaultType, typename U> \
  CASTSIM_CALL void NAME(MaskReg &carry, Vector<U> &dst, const Vector<U> &a, const Vector<U> &b, const MaskReg &mask) { \
    const Vector<U> left = a, right = b; const MaskReg own = mask; \
    Issue(CASTSIM_HERE, MNEMONIC).add(left).add(right).add(own).makes(dst).makes(carry, 32); }
CASTSIM_CARRY(Add, "vaddc") CASTSIM_CARRY(AddCarryOut, "vaddc") CASTSIM_CARRY(Sub, "vsubc") CASTSIM_CARRY(SubCarryOut, "vsubc")
#define CASTSIM_CARRIES(NAME, MNEMONIC) template <typename T = DefaultType, typename U> \
  CASTSIM_CALL void NAME(MaskReg &carry, Vector<U> &dst, const Vector<U> &a, const Vector<U> &b, const MaskReg &before, const MaskReg &mask) { \
    const Vector<U> left = a, right = b; const MaskReg last = before, own = mask; \
    Issue(CASTSIM_HERE, MNEMONIC).add(left).add(right).add(last).add(own).makes(dst).makes(carry, 32); }
CASTSIM_CARRIES(AddC, "vaddcs") CASTSIM_CARRIES(AddCarryOuts, "vaddcs") CASTSIM_CARRIES(SubC, "vsubcs") CASTSIM_CARRIES(SubCarryOuts, "vsubcs")
template <typename T = DefaultType, typename S = DefaultType, HighLowPart part = HighLowPart::LOWEST, typename U, typename V>
CASTSIM_CALL void Pack(Vector<U> &dst, const Vector<V> &src) {
  castsim::lanes(CASTSIM_HERE, "vpack", dst, false, src, castsim::Word{"half", castsim_registers::half(part)});
}
template <typename T = DefaultType, typename S = DefaultType, HighLowPart part = HighLowPart::LOWEST, typename U, typename V>
CASTSIM_CALL void UnPack(Vector<U> &dst, const Vector<V> &src) {
  castsim::lanes(CASTSIM_HERE, std::is_signed_v<V> ? "vsunpack" : "vzunpack", dst, false, src, castsim::Word{"half", castsim_registers::half(part)});
}
#define CASTSIM_SQUEEZE(NAME) template <typename T = DefaultType, GatherMaskMode store = GatherMaskMode::NO_STORE_REG, typename U> \
  CASTSIM_CALL void NAME(Vector<U> &dst, const Vector<U> &src, const MaskReg &mask) { castsim::lanes(CASTSIM_HERE, "vsqz", dst, false, src, mask); }
CASTSIM_SQUEEZE(Squeeze) CASTSIM_SQUEEZE(GatherMask)
template <typename U> CASTSIM_CALL void Unsqueeze(Vector<U> &dst, const MaskReg &mask) {
  if (!dst.number) castsim::lanes(CASTSIM_HERE, "vbr", dst, false, U(0));
  castsim::lanes(CASTSIM_HERE, "vusqz", dst, false, Vector<U>(dst), mask);
}

// ------------------------------------------------------------------------------------------------ reductions, order
namespace castsim_registers {
inline const char *const WHOLE[] = {"vcadd", "vcmax", "vcmin"}, *const BLOCKS[] = {"vcgadd", "vcgmax", "vcgmin"};
template <auto mode, typename U, typename V>
void reduce(const void *place, const char *const names[], ReduceType kind, Vector<U> &dst, const Vector<V> &src, const MaskReg &mask) {
  if (names == WHOLE && kind != ReduceType::SUM)
    castsim::note(place, "lane 1 of the result is 0: castsim's vcmax and vcmin yield the value, not its index");
  castsim::lanes(place, names[int(kind)], dst, merges<mode>(place), src, mask);
}
}  // namespace castsim_registers
#define CASTSIM_REDUCE(NAME, NAMES) template <ReduceType kind, typename T = DefaultType, typename S = DefaultType, auto mode = MaskMergeMode::ZEROING, typename U, typename V> \
  CASTSIM_CALL void NAME(Vector<U> &dst, const Vector<V> &src, const MaskReg &mask) { castsim_registers::reduce<mode>(CASTSIM_HERE, castsim_registers::NAMES, kind, dst, src, mask); }
CASTSIM_REDUCE(Reduce, WHOLE) CASTSIM_REDUCE(ReduceDataBlock, BLOCKS)
#define CASTSIM_REDUCES(NAME, NAMES, KIND) template <typename T = DefaultType, typename S = DefaultType, auto mode = MaskMergeMode::ZEROING, typename U, typename V> \
  CASTSIM_CALL void NAME(Vector<U> &dst, const Vector<V> &src, const MaskReg &mask) { castsim_registers::reduce<mode>(CASTSIM_HERE, castsim_registers::NAMES, ReduceType::KIND, dst, src, mask); }
CASTSIM_REDUCES(ReduceSum, WHOLE, SUM) CASTSIM_REDUCES(ReduceMax, WHOLE, MAX) CASTSIM_REDUCES(ReduceMin, WHOLE, MIN)
CASTSIM_REDUCES(ReduceSumWithDataBlock, BLOCKS, SUM) CASTSIM_REDUCES(ReduceMaxWithDataBlock, BLOCKS, MAX) CASTSIM_REDUCES(ReduceMinWithDataBlock, BLOCKS, MIN)
template <ReduceType kind, typename T = DefaultType, typename U> CASTSIM_CALL void PairReduceElem(Vector<U> &dst, const Vector<U> &src, const MaskReg &mask) {
  if (kind != ReduceType::SUM) castsim::refuse(CASTSIM_HERE, "PairReduceElem of another kind than SUM is not modelled");
  castsim::lanes(CASTSIM_HERE, "vcpadd", dst, false, src, mask);
}
template <MemType first, MemType then> CASTSIM_CALL void LocalMemBar() {
  static const char *const words[6][6] = {{"VST_VST", "VST_VLD", "VST_ST", "VST_LD"}, {"VLD_VST", nullptr, "VLD_ST"}, {"ST_VST", "ST_VLD"},
                                          {"LD_VST"}, {nullptr, nullptr, nullptr, nullptr, "VV_ALL", "VS_ALL"}, {nullptr, nullptr, nullptr, nullptr, "SV_ALL"}};
  const char *word = words[int(first)][int(then)];
  if (!word) castsim::refuse(CASTSIM_HERE, "LocalMemBar has no barrier of these two");
  Issue(CASTSIM_HERE, "mem_bar").add(castsim::Word{"barrier", word});
}
template <SpecialPurposeReg which> CASTSIM_CALL void ClearSpr() { Issue(CASTSIM_HERE, "sprclr").add(castsim::Word{"register", "AR"}); }
#define CASTSIM_REG_REFUSED(NAME) CASTSIM_REFUSED(NAME, "has no counterpart among the instructions that castsim models")
CASTSIM_EACH(CASTSIM_REG_REFUSED, GetSpr, Histograms, AbsSub, MaskGenWithRegTensor, Log2, Log10)
}  // namespace Reg
namespace MicroAPI = Reg;
using Reg::CastTrait;
}  // namespace AscendC
