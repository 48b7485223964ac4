// Small words of the library: constants, traits, integer functions, scalars of one type as another, parameter lists.

#define likely(...) __builtin_expect(bool(__VA_ARGS__), 1)
#define unlikely(...) __builtin_expect(bool(__VA_ARGS__), 0)
using float32_t = float;
#undef assert
#define assert(...) ((void)0)
#define ascendc_assert(...) ((void)0)
#define __mix__(...)

namespace AscendC {
namespace Std = ::std;
constexpr uint32_t ONE_BLK_SIZE = 32, ONE_REPEAT_BYTE_SIZE = 256, DEFAULT_BLK_NUM = 8, DEFAULT_C0_SIZE = 32, ONE_BLK_HALF_NUM = 16,
                   ONE_BLK_FLOAT_NUM = 8, ONE_REPEAT_HALF_SIZE = 128, ONE_REPEAT_FLOAT_SIZE = 64, HALF_FACTOR = 2, DOUBLE_FACTOR = 2;
constexpr uint32_t MAX_REPEAT_TIMES = 255, MIN_REPEAT_TIMES = 0, DEFAULT_BLK_STRIDE = 1, DEFAULT_REPEAT_STRIDE = 8,
                   HALF_DEFAULT_REPEAT_STRIDE = 4, DEFAULT_REDUCE_DST_REP_SRIDE = 1, VREDUCE_PER_REP_OUTPUT = 2, B64_BYTE_SIZE = 8,
                   B32_BYTE_SIZE = 4, B16_BYTE_SIZE = 2, B8_BYTE_SIZE = 1, B32_DATA_NUM_PER_BLOCK = 8, B16_DATA_NUM_PER_BLOCK = 16,
                   B32_DATA_NUM_PER_REPEAT = 64, B16_DATA_NUM_PER_REPEAT = 128, FULL_MASK_LEN = 128, HALF_MASK_LEN = 64;
constexpr uint32_t ONE_BYTE_BIT_SIZE = 8, ONE_DUMP_BACKUP_SIZE = 1024, BLOCK_CUBE = 16, CUBE_MAX_SIZE = 256,
                   TOTAL_UB_SIZE = (castsim::A5 ? 248 : 192) * 1024, TMP_UB_SIZE = 8192, TMP_UB_OFFSET = 184 * 1024;
constexpr int32_t MASK_PLACEHOLDER = 0, DEFAULT_BLOCK_SIZE = 256, MAX_BLOCK_COUNT = 4095, NCHW_CONV_ADDR_LIST_SIZE = 16;
inline uint64_t MASK_PLACEHOLDER_LIST[2] = {0, 0};

template <typename A, typename B> struct IsSameType : std::is_same<A, B> {};
template <bool Holds, typename A, typename B> struct Conditional : std::conditional<Holds, A, B> {};
template <bool Holds, typename T = void> struct EnableIf : std::enable_if<Holds, T> {};
template <typename T, typename... Known> constexpr bool SupportType() { return (std::is_same_v<T, Known> || ...); }
template <typename T> struct SizeOfBits : std::integral_constant<int, castsim::bits_per_element<T>> {};

// Templates, so that a kernel's own function of the name is chosen before them.
template <typename A, typename B> constexpr uint32_t DivCeil(A number, B by) { return by ? uint32_t((number + by - 1) / by) : 0; }
template <typename A, typename B> constexpr int32_t CeilDivision(A number, B by) { return by ? int32_t((number + by - 1) / by) : 0; }
template <typename A, typename B> constexpr uint32_t AlignUp(A number, B by) { return by ? uint32_t((number + by - 1) / by * by) : 0; }
constexpr uint32_t GetDataBlockSizeInBytes() { return ONE_BLK_SIZE; }
constexpr uint32_t GetVecLen() { return ONE_REPEAT_BYTE_SIZE; }
constexpr uint32_t GetUBSizeInBytes() { return TOTAL_UB_SIZE; }
constexpr float ToFloat(bfloat16_t value) { return float(value); }
constexpr bfloat16_t ToBfloat16(float value) { return bfloat16_t(value); }
constexpr int64_t ScalarCountLeadingZero(uint64_t word) { return std::countl_zero(word); }
constexpr int64_t CountBitsCntSameAsSignBit(int64_t word) { return std::countl_zero(uint64_t(word < 0 ? ~word : word)) - 1; }
template <int Bit> constexpr int64_t ScalarGetCountOfValue(uint64_t word) { return std::popcount(Bit ? word : ~word); }
template <int Bit> constexpr int64_t ScalarGetSFFValue(uint64_t word) {
  const uint64_t own = Bit ? word : ~word;
  return own ? std::countr_zero(own) : -1;
}
template <typename From, typename To, RoundMode mode> To ScalarCast(From value) {
  const double wide = double(float(value)), down = std::floor(wide);
  if constexpr (mode == RoundMode::CAST_CEIL) return To(std::ceil(wide));
  if constexpr (mode == RoundMode::CAST_ROUND) return To(std::round(wide));
  if constexpr (mode == RoundMode::CAST_RINT) return To(std::nearbyint(wide));
  return To(mode == RoundMode::CAST_FLOOR ? down : wide);
}
#define CASTSIM_SILENT(NAME) template <auto... V, typename... A> void NAME(A &&...) {} \
  template <typename T, auto... V, typename... A> requires(sizeof...(V) > 0) void NAME(A &&...) {}
CASTSIM_EACH(CASTSIM_SILENT, Trap, InitSocState, ICachePreLoad, SetNextTaskStart, WaitPreTaskEnd, SetHF32Mode, SetHF32TransMode,
             SetMMLayoutTransform, printf, PrintTimeStamp, MetricsProfStart, MetricsProfStop, DataSyncBarrier, DataCacheCleanAndInvalid,
             DataCachePreload, DumpTensor, DumpAccChkPoint, TRACE_START, TRACE_STOP)

// Parameters of functions that castsim refuses by name: kernels keep them in their own structures.
struct SoftMaxTiling { uint32_t srcM, srcK, srcSize, outMaxM, outMaxK, outMaxSize, splitM, splitK, splitSize, reduceM, reduceK,
                       reduceSize, rangeM, tailM, tailSplitSize, tailReduceSize; };
struct SoftMaxShapeInfo { uint32_t srcM, srcK, oriSrcM, oriSrcK; };
struct SumParams { uint32_t outter, inner, n; };
struct MeanParams { uint32_t outter = 1, inner = 0, n = 0; };
struct TopkTiling { int32_t tmpLocalSize, allDataSize, innerDataSize, sortRepeat, mrgSortRepeat, kAlignFourBytes, kAlignTwoBytes,
                    maskOffset, maskVreducev2FourBytes, maskVreducev2TwoBytes, mrgSortSrc1offset, mrgSortSrc2offset,
                    mrgSortSrc3offset, mrgSortTwoQueueSrc1Offset, mrgFourQueueTailPara1, mrgFourQueueTailPara2, srcIndexOffset;
                    uint32_t copyUbToUbBlockCount; int32_t topkMrgSrc1MaskSizeOffset, topkNSmallSrcIndexOffset;
                    uint32_t vreduceValMask0, vreduceValMask1, vreduceIdxMask0, vreduceIdxMask1; uint16_t vreducehalfValMask[8]; };
struct TopKInfo { int32_t outter = 1, inner, n; };
}  // namespace AscendC
using AscendC::SoftMaxTiling;
using AscendC::TopkTiling;
