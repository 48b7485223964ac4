// The device compiler's instructions on vector registers of the A5, as kernels call them in a vector function.
#pragma once

#include "castsim_registers.hpp"

using vector_f32 = castsim::Vector<float>;
using vector_f16 = castsim::Vector<half>;
using vector_bf16 = castsim::Vector<bfloat16_t>;
using vector_s8 = castsim::Vector<int8_t>;
using vector_u8 = castsim::Vector<uint8_t>;
using vector_s16 = castsim::Vector<int16_t>;
using vector_u16 = castsim::Vector<uint16_t>;
using vector_s32 = castsim::Vector<int32_t>;
using vector_u32 = castsim::Vector<uint32_t>;
using vector_s64 = castsim::Vector<int64_t>;
using vector_f8e4m3 = castsim::Vector<float8_e4m3_t>;
using vector_f8e5m2 = castsim::Vector<float8_e5m2_t>;
using vector_hif8 = castsim::Vector<hifloat8_t>;
using vector_bool = castsim::Predicate;
using vector_align = castsim::Alignment;

// Words that instructions take.
#define CASTSIM_DIST(NAME) inline constexpr castsim::Word NAME{"dist", #NAME};
#define CASTSIM_PATTERN(NAME) inline constexpr castsim::Word NAME{"pattern", #NAME};
#define CASTSIM_PART(NAME) inline constexpr castsim::Word PART_##NAME{"part", #NAME};
#define CASTSIM_ROUND(NAME) inline constexpr castsim::Word ROUND_##NAME{"rnd", #NAME};
#define CASTSIM_BARRIER(NAME) inline constexpr castsim::Word NAME{"barrier", #NAME};
CASTSIM_EACH(CASTSIM_DIST, NORM, BRC_B8, BRC_B16, BRC_B32, BLK, US_B8, US_B16, DS_B8, DS_B16, UNPK_B8, UNPK_B16, UNPK_B32,
             UNPK4_B8, E2B_B16, E2B_B32, DINTLV_B8, DINTLV_B16, DINTLV_B32, BDINTLV, NORM_B8, NORM_B16, NORM_B32,
             ONEPT_B8, ONEPT_B16, ONEPT_B32, PK_B16, PK_B32, PK_B64, PK4_B32, INTLV_B8, INTLV_B16, INTLV_B32)
CASTSIM_EACH(CASTSIM_PATTERN, PAT_ALL, PAT_ALLF, PAT_VL1, PAT_VL2, PAT_VL3, PAT_VL4, PAT_VL8, PAT_VL16, PAT_VL32,
             PAT_VL64, PAT_VL128, PAT_M3, PAT_M4, PAT_H, PAT_Q)
CASTSIM_EACH(CASTSIM_PART, EVEN, ODD, P0, P1, P2, P3)
CASTSIM_EACH(CASTSIM_ROUND, R, A, F, C, Z, O, H)
CASTSIM_EACH(CASTSIM_BARRIER, VV_ALL, VST_VLD, VLD_VST, VST_VST, VS_ALL, VST_LD, VLD_ST, VST_ST, SV_ALL, ST_VLD, LD_VST, ST_VST)
inline constexpr castsim::Word RS_ENABLE{"sat", "SAT"}, RS_DISABLE{"sat", "NOSAT"}, LOWER{"half", "LOWER"}, HIGHER{"half", "HIGHER"},
    POS_LOWEST{"position", "LOWEST"}, POS_HIGHEST{"position", "HIGHEST"}, INC_ORDER{"order", "ASC"}, DEC_ORDER{"order", "DESC"},
    SPR_AR{"register", "AR"};
struct CastsimMerging { bool merges = false; };
struct CastsimUpdate {};
inline constexpr CastsimMerging MODE_ZEROING{false}, MODE_MERGING{true}, MODE_UNKNOWN{false};
inline constexpr CastsimUpdate POST_UPDATE{};

// dst, registers, scalars, the mask, words, and a mode.
#define CASTSIM_LANES(NAME) template <typename T, typename... A> CASTSIM_CALL void NAME(castsim::Vector<T> &dst, const A &...given) { \
    castsim_lanes(CASTSIM_HERE, #NAME, dst, given...); }
template <typename T, typename... A> void castsim_lanes(const void *place, const char *name, castsim::Vector<T> &dst, const A &...given) {
  bool merges = false;
  auto kept = [&](const auto &each) {
    if constexpr (std::is_same_v<std::remove_cvref_t<decltype(each)>, CastsimMerging>) return merges = each.merges, castsim::Word{"", ""};
    else return each;
  };
  const std::tuple words{kept(given)...};
  std::apply([&](const auto &...each) { castsim::lanes(place, name, dst, merges, each...); }, words);
}
CASTSIM_EACH(CASTSIM_LANES, vadd, vsub, vmul, vdiv, vmax, vmin, vand, vor, vxor, vnot, vabs, vneg, vrelu, vexp, vln, vsqrt,
             vrec, vrsqrt, vadds, vmuls, vmaxs, vmins, vlrelu, vprelu, vaddrelu, vsubrelu, vcvt, vcadd, vcmax, vcmin,
             vcgadd, vcgmax, vcgmin, vcpadd, vdup, vbr, vpack, vsunpack, vzunpack, vsqz, vselr, vexpdif, vshl, vshr, vmov)
#define CASTSIM_ACCUMULATES(NAME) template <typename T, typename... A> CASTSIM_CALL void NAME(castsim::Vector<T> &dst, \
    const castsim::Vector<T> &a, const castsim::Vector<T> &b, const A &...more) { \
    castsim_lanes(CASTSIM_HERE, #NAME, dst, castsim::Vector<T>(dst), a, b, more...); }
CASTSIM_EACH(CASTSIM_ACCUMULATES, vmula, vmadd)
template <typename T, typename N, typename... A> CASTSIM_CALL void vaxpy(castsim::Vector<T> &dst, const castsim::Vector<T> &src, N scalar, const A &...more) {
  castsim_lanes(CASTSIM_HERE, "vaxpy", dst, src, castsim::Vector<T>(dst), scalar, more...);
}
#define CASTSIM_SHIFT(NAME) template <typename T, typename N, typename... A> CASTSIM_CALL void NAME(castsim::Vector<T> &dst, \
    const castsim::Vector<T> &src, N count, const A &...more) { \
    castsim_lanes(CASTSIM_HERE, #NAME, dst, src, castsim::Number{(long long)count, "i16"}, more...); }
CASTSIM_EACH(CASTSIM_SHIFT, vshls, vshrs)
template <typename T> CASTSIM_CALL void vsel(castsim::Vector<T> &dst, const castsim::Vector<T> &a, const castsim::Vector<T> &b, const vector_bool &mask) {
  castsim::lanes(CASTSIM_HERE, "vsel", dst, false, a, b, mask);
}
template <typename T> CASTSIM_CALL void vtrc(castsim::Vector<T> &dst, const castsim::Vector<T> &src, castsim::Word rounding, const vector_bool &mask,
                                            CastsimMerging mode = {}) {
  castsim::lanes(CASTSIM_HERE, "vtrc", dst, mode.merges, src, mask, rounding);
}
template <typename T, typename N> CASTSIM_CALL void vci(castsim::Vector<T> &dst, N first, castsim::Word order = INC_ORDER) {
  castsim::lanes(CASTSIM_HERE, "vci", dst, false, first, order);
}
#define CASTSIM_TWO(NAME) template <typename T> CASTSIM_CALL void NAME(castsim::Vector<T> &one, castsim::Vector<T> &other, \
    const castsim::Vector<T> &a, const castsim::Vector<T> &b) { \
    const castsim::Vector<T> left = a, right = b; \
    castsim::Issue(CASTSIM_HERE, #NAME).add(left).add(right).makes(one).makes(other); }
CASTSIM_EACH(CASTSIM_TWO, vintlv, vdintlv)
#define CASTSIM_COMPARED(NAME) \
  template <typename T> CASTSIM_CALL void vcmp_##NAME(vector_bool &dst, const castsim::Vector<T> &a, const castsim::Vector<T> &b, const vector_bool &mask) { \
    dst = castsim::masks(CASTSIM_HERE, "vcmp", castsim::MASK_BITS<T>, a, b, mask, castsim::Word{"cmp", #NAME}); } \
  template <typename T, typename N> CASTSIM_CALL void vcmps_##NAME(vector_bool &dst, const castsim::Vector<T> &a, N scalar, const vector_bool &mask) { \
    const vector_bool own = mask; \
    castsim::Issue(CASTSIM_HERE, "vcmps").add(a).template scalar_of<T>(scalar).add(own).add(castsim::Word{"cmp", #NAME}).makes(dst, castsim::MASK_BITS<T>); }
CASTSIM_EACH(CASTSIM_COMPARED, eq, ne, lt, le, gt, ge)

// Loads and stores; an offset counts elements, and a second pointer form moves the pointer by it afterwards.
template <typename T, typename U> CASTSIM_CALL void vlds(castsim::Vector<U> &dst, T *from, int32_t offset, castsim::Word mode) {
  castsim::load(CASTSIM_HERE, dst, from + offset, mode.word);
}
template <typename T, typename U> CASTSIM_CALL void vlds(castsim::Vector<U> &dst, T *&from, int32_t offset, castsim::Word mode, CastsimUpdate) {
  castsim::load(CASTSIM_HERE, dst, from, mode.word);
  from += offset;
}
template <typename T, typename U> CASTSIM_CALL void vlds(castsim::Vector<U> &one, castsim::Vector<U> &other, T *from, int32_t offset, castsim::Word mode) {
  castsim::load(CASTSIM_HERE, one, other, from + offset, mode.word);
}
template <typename T, typename U> CASTSIM_CALL void vsts(const castsim::Vector<U> &src, T *to, int32_t offset, castsim::Word mode, const vector_bool &mask) {
  castsim::store(CASTSIM_HERE, to + offset, src, mask, mode.word);
}
template <typename T, typename U>
CASTSIM_CALL void vsts(const castsim::Vector<U> &src, T *&to, int32_t offset, castsim::Word mode, const vector_bool &mask, CastsimUpdate) {
  castsim::store(CASTSIM_HERE, to, src, mask, mode.word);
  to += offset;
}
template <typename T, typename U>
CASTSIM_CALL void vsts(const castsim::Vector<U> &one, const castsim::Vector<U> &other, T *to, int32_t offset, castsim::Word mode, const vector_bool &mask) {
  castsim::store(CASTSIM_HERE, to + offset, one, other, mask, mode.word);
}
template <typename T, typename U> CASTSIM_CALL void vsldb(castsim::Vector<U> &dst, T *from, int32_t strides, const vector_bool &mask) {
  castsim::load_blocks(CASTSIM_HERE, dst, from + (strides & 0xFFFF) * 32 / (int)sizeof(T), strides >> 16, mask);
}
template <typename T, typename U> CASTSIM_CALL void vsstb(const castsim::Vector<U> &src, T *to, int32_t strides, const vector_bool &mask) {
  castsim::store_blocks(CASTSIM_HERE, to + (strides & 0xFFFF) * 32 / (int)sizeof(T), src, strides >> 16, mask);
}
template <typename T> CASTSIM_CALL void vldas(vector_align &state, T *from) { castsim::Issue(CASTSIM_HERE, "vldas").add(castsim::exactly(from)).makes(state); }
template <typename T, typename U> CASTSIM_CALL void vldus(castsim::Vector<U> &dst, vector_align &state, T *from) {
  castsim::load_unaligned(CASTSIM_HERE, dst, state, from);
}
template <typename T, typename U> CASTSIM_CALL void vldus(castsim::Vector<U> &dst, vector_align &state, T *&from, int32_t step, CastsimUpdate) {
  castsim::load_unaligned(CASTSIM_HERE, dst, state, from);
  from += step;
}
template <typename T, typename U> CASTSIM_CALL void vstus(vector_align &state, uint32_t count, const castsim::Vector<U> &src, T *&to, CastsimUpdate) {
  castsim::store_unaligned(CASTSIM_HERE, to, src, state, count);
  to += count;
}
template <typename T> CASTSIM_CALL void vstas(const vector_align &state, T *to, int32_t offset) {
  castsim::Issue(CASTSIM_HERE, "vstas").add(state).add(castsim::exactly(to)).add(castsim::Number{offset, "i32"});
}
template <typename T, typename U> CASTSIM_CALL void vgather2(castsim::Vector<U> &dst, T *from, const castsim::Vector<uint32_t> &index, const vector_bool &mask) {
  castsim::Issue(CASTSIM_HERE, "vgather2").add(castsim::exactly(from)).add(index).add(mask).makes(dst);
}

// Predicates.
#define CASTSIM_PREDICATES(BITS) \
  CASTSIM_CALL inline vector_bool pset_b##BITS(castsim::Word pattern) { return castsim::pattern_mask(CASTSIM_HERE, BITS, pattern.word); } \
  CASTSIM_CALL inline vector_bool pge_b##BITS(castsim::Word pattern) { return castsim::pattern_mask(CASTSIM_HERE, BITS, pattern.word); } \
  CASTSIM_CALL inline vector_bool plt_b##BITS(uint32_t &count, CastsimUpdate) { \
    const vector_bool mask = castsim::count_mask(CASTSIM_HERE, BITS, count); \
    return count = uint32_t(count > 2048 / BITS ? count - 2048 / BITS : 0), mask; }
CASTSIM_EACH(CASTSIM_PREDICATES, 8, 16, 32)
#define CASTSIM_LOGIC(NAME) CASTSIM_CALL inline void NAME(vector_bool &dst, const vector_bool &a, const vector_bool &b, const vector_bool &mask) { \
    dst = castsim::masks(CASTSIM_HERE, #NAME, a.bits, a, b, mask); }
CASTSIM_EACH(CASTSIM_LOGIC, pand, por, pxor, psel)
CASTSIM_CALL inline void pnot(vector_bool &dst, const vector_bool &a, const vector_bool &mask) { dst = castsim::masks(CASTSIM_HERE, "pnot", a.bits, a, mask); }
CASTSIM_CALL inline void mem_bar(castsim::Word barrier) { castsim::Issue(CASTSIM_HERE, "mem_bar").add(barrier); }
CASTSIM_CALL inline void sprclr(castsim::Word which) { castsim::Issue(CASTSIM_HERE, "sprclr").add(which); }
