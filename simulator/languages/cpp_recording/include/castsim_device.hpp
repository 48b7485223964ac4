// Words of the device's language that kernels of every library have: element types, pipes, the macros of refusals.
#pragma once

#include "castsim_recorder.hpp"

using half = castsim::Float16<5, 10>;
using bfloat16_t = castsim::Float16<8, 7>;
using float8_e4m3_t = castsim::Byte<0>;
using float8_e5m2_t = castsim::Byte<1>;
using hifloat8_t = castsim::Byte<2>;
using float8_e8m0_t = castsim::Byte<3>;
using float4_e1m2x2_t = castsim::Byte<4>;
using float4_e2m1x2_t = castsim::Byte<5>;
using int4b_t = castsim::Byte<6>;
using GM_ADDR = uint8_t *;
 namespace castsim {
CASTSIM_ELEMENT(float, "f32") CASTSIM_ELEMENT(half, "f16") CASTSIM_ELEMENT(bfloat16_t, "bf16")
CASTSIM_ELEMENT(float8_e4m3_t, "e4m3fn") CASTSIM_ELEMENT(float8_e5m2_t, "e5m2") CASTSIM_ELEMENT(hifloat8_t, "hif8")
CASTSIM_ELEMENT(float8_e8m0_t, "e8m0") CASTSIM_ELEMENT(float4_e1m2x2_t, "e1m2")
CASTSIM_ELEMENT(float4_e2m1x2_t, "e2m1") CASTSIM_ELEMENT(int4b_t, "i4")
 template <typename T> constexpr int bits_per_element = int(sizeof(T)) * 8;
template <> inline constexpr int bits_per_element<float4_e1m2x2_t> = 4;
template <> inline constexpr int bits_per_element<float4_e2m1x2_t> = 4;
template <> inline constexpr int bits_per_element<int4b_t> = 4;
}  // namespace castsim

enum pipe_t { PIPE_S, PIPE_V, PIPE_M, PIPE_MTE1, PIPE_MTE2, PIPE_MTE3, PIPE_ALL, PIPE_MTE4, PIPE_MTE5, PIPE_V2, PIPE_FIX };
enum event_t { EVENT_ID0, EVENT_ID1, EVENT_ID2, EVENT_ID3, EVENT_ID4, EVENT_ID5, EVENT_ID6, EVENT_ID7 };
namespace castsim {
inline const char *const PIPES[] = {"PIPE_S",    "PIPE_V",   "PIPE_M",    "PIPE_MTE1", "PIPE_MTE2", "PIPE_MTE3",
                                    "PIPE_ALL",  "PIPE_MTE4", "PIPE_MTE5", "PIPE_V2",   "PIPE_FIX"};
#if __CCE_AICORE__ == 310
constexpr bool A5 = true;
#else
constexpr bool A5 = false;
#endif
inline void barrier(const void *place, pipe_t pipe) { order(place, "barrier", PIPES[pipe], "", 0); }
inline void flag(const void *place, const char *what, pipe_t from, pipe_t to, int event) {
  order(place, what, PIPES[from], PIPES[to], event);
}
}  // namespace castsim

enum cache_line_t { SINGLE_CACHE_LINE, ENTIRE_DATA_CACHE };
enum dcci_dst_t { CACHELINE_ALL, CACHELINE_UB, CACHELINE_OUT, CACHELINE_ATOMIC };
enum mem_dsb_t { DSB_ALL, DSB_DDR, DSB_UB, DSB_SEQ };
 #define CASTSIM_FLAG(NAME, WORD) \
  CASTSIM_CALL inline void NAME(pipe_t from, pipe_t to, int event) { castsim::flag(CASTSIM_HERE, WORD, from, to, event); }
CASTSIM_FLAG(set_flag, "set") CASTSIM_FLAG(wait_flag, "wait")
CASTSIM_CALL inline void pipe_barrier(pipe_t pipe) { castsim::barrier(CASTSIM_HERE, pipe); }
template <typename... A> CASTSIM_CALL void dsb(A...) { castsim::barrier(CASTSIM_HERE, PIPE_ALL); }
template <typename... A> void dcci(A...) {}

// The core: variables, since kernels have parameters of these names.
#define CASTSIM_CORE(NAME, MEMBER) inline int64_t NAME() { return castsim::core.MEMBER; } \
  template <typename A> inline int64_t NAME(A *) { return castsim::core.MEMBER; }
CASTSIM_CORE(get_block_idx, block) CASTSIM_CORE(get_block_num, blocks) CASTSIM_CORE(get_coreid, block)
CASTSIM_CORE(get_subblockid, sub) CASTSIM_CORE(get_subblockdim, subs) CASTSIM_CORE(get_sub_block_id, sub)
#define CASTSIM_LESS(T) constexpr T min(T one, T other) { return other < one ? other : one; } \
  constexpr T max(T one, T other) { return one < other ? other : one; }
CASTSIM_LESS(int) CASTSIM_LESS(unsigned) CASTSIM_LESS(long) CASTSIM_LESS(unsigned long) CASTSIM_LESS(long long)
CASTSIM_LESS(unsigned long long) CASTSIM_LESS(float)

// A macro of each of up to 256 names.
#define CASTSIM_PARENTHESES ()
#define CASTSIM_AGAIN1(...) __VA_ARGS__
#define CASTSIM_AGAIN2(...) CASTSIM_AGAIN1(CASTSIM_AGAIN1(CASTSIM_AGAIN1(CASTSIM_AGAIN1(__VA_ARGS__))))
#define CASTSIM_AGAIN3(...) CASTSIM_AGAIN2(CASTSIM_AGAIN2(CASTSIM_AGAIN2(CASTSIM_AGAIN2(__VA_ARGS__))))
#define CASTSIM_AGAIN4(...) CASTSIM_AGAIN3(CASTSIM_AGAIN3(CASTSIM_AGAIN3(CASTSIM_AGAIN3(__VA_ARGS__))))
#define CASTSIM_EACH(MACRO, ...) CASTSIM_AGAIN4(CASTSIM_AGAIN4(CASTSIM_NEXT(MACRO, __VA_ARGS__)))
#define CASTSIM_NEXT(MACRO, NAME, ...) MACRO(NAME) __VA_OPT__(CASTSIM_REST CASTSIM_PARENTHESES (MACRO, __VA_ARGS__))
#define CASTSIM_REST() CASTSIM_NEXT

// What castsim cannot follow is refused where it is called.
#define CASTSIM_REFUSED(NAME, WHY) template <auto... V, typename... A> CASTSIM_CALL long NAME(A &&...) { \
    castsim::refuse(CASTSIM_HERE, #NAME " " WHY); } template <typename T, auto... V, typename... A> \
    requires(sizeof...(V) > 0) CASTSIM_CALL long NAME(A &&...) { castsim::refuse(CASTSIM_HERE, #NAME " " WHY); }
