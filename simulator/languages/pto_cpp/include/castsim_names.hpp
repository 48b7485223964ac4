// Enumerations, constants and types of the library's public headers, inside namespace pto where they stand there.
// Values: hw-native-sys/pto-isa at 3186c381, include/pto/common; tests/vectors/pto_cpp_names.csv names the file of each.
#pragma once

#include <cstdint>
#include <type_traits>

// ------------------------------------------------------------------------------------------------ buffer_limits.hpp
// In bytes; a kernel may set its own before it includes the library.

#define PTO_CEIL(NUMBER, STEP) ((((NUMBER) + (STEP) - 1) / (STEP)) * (STEP))
#define EDGE_CASE_ALIGN_ENABLE 1
#define TINSERT_MODE_DEFINED
#define PTO_UBUF_ALIGN_BYTES 32u
#define PTO_CBUF_ALIGN_BYTES 32u
#define PTO_L0A_ALIGN_BYTES 32u
#define PTO_L0B_ALIGN_BYTES 32u
#define PTO_L0C_ALIGN_BYTES 32u
#define PTO_BIAS_ALIGN_BYTES 32u
#define PTO_FBUF_ALIGN_BYTES 32u
#define PTO_CBUF_SIZE_BYTES (1024u * 1024u)
#define PTO_L0A_SIZE_BYTES (32u * 1024u)
#define PTO_L0B_SIZE_BYTES (32u * 1024u)
#define PTO_L0C_SIZE_BYTES (256u * 1024u)
#define PTO_BIAS_SIZE_BYTES (4u * 1024u)
#define PTO_FBUF_SIZE_BYTES (7u * 1024u)
#define PTO_SCALELEFT_SIZE_BYTES (4u * 1024u)
#define PTO_SCALERIGHT_SIZE_BYTES (4u * 1024u)
#ifndef PTO_UBUF_SIZE_BYTES
#define PTO_UBUF_SIZE_BYTES (256u * 1024u)
#endif
 namespace pto {

// ------------------------------------------------------------------------------------------------ constants.hpp
 constexpr int REPEAT_BYTE = 256, REPEAT_MAX = 255, REPEAT_STRIDE_MAX = 255, BLOCK_BYTE_SIZE = 32, BLOCK_LEN = 16;
constexpr int FIXP_BURST_UNIT_LEN = 64, CUBE_BLOCK_SIZE = 512, C0_SIZE_BYTE = 32, ACC_C0_SIZE = 16;
constexpr int FRACTAL_NZ_ROW = 16, FRACTAL_ZZ_ROW = 16, B8_DATA_TYPE_OFFSET = 8, PAD_SHIFT_LENGTH = 32;
constexpr int MX_COL_LEN = 2, MX_ROW_LEN = 16, MX_BLOCK_SIZE = 32, HIF4_COL_LEN = 4, HIF4_ROW_LEN = 16, HIF4_BLOCK_SIZE = 64;
constexpr int MAD_MODE_BIT = 46, MAD_ROUND_MODE_BIT = 47, SAT_MODE_BIT_48 = 48, SAT_MODE_BIT_59 = 59, SAT_MODE_BIT_60 = 60;
constexpr int TROW_PROD_LOOP_B16 = 7, TROW_PROD_LOOP_B32 = 6, MAX_CONVTILE_DIM = 6, DYNAMIC = -1, SCALAR_TILE_DIM = 1;
constexpr int NUM_1 = 1, NUM_4 = 4, NUM_8 = 8, NUM_12 = 12, NUM_16 = 16, NUM_32 = 32, NUM_64 = 64, NUM_77 = 77, NUM_96 = 96;
constexpr int NUM_128 = 128, NUM_256 = 256, NUM_512 = 512, PTO_RANDOM_KEY_SIZE = 2, PTO_RANDOM_COUNTER_SIZE = 4;
constexpr uint32_t SHIFT_BLOCK_LEN = 4, SHIFT_BLOCK_BYTE = 5, SHIFT_FRACTAL_BYTE = 9, B4_C0_SIZE = 64;
constexpr uint32_t TMP_UB_SIZE = 8 * 1024, TMP_UB_OFFSET = 184 * 1024;
constexpr uint32_t ELE_CNT_B8 = REPEAT_BYTE, ELE_CNT_B16 = ELE_CNT_B8 / 2, ELE_CNT_B32 = ELE_CNT_B16 / 2, ELE_CNT_B64 = ELE_CNT_B32 / 2;
constexpr uint64_t BLOCK_MAX_PER_REPEAT = 8, MASK_LEN = 64;
constexpr uint16_t PTO_TIME_1 = 1, PTO_TIME_2 = 2, PTO_TIME_4 = 4, PTO_IDX_0 = 0, PTO_IDX_1 = 1, PTO_IDX_2 = 2, PTO_IDX_3 = 3;
constexpr uint16_t SYNC_AIC_FLAG = 11, SYNC_AIV_FLAG = 12, SYNC_AIC_AIV_FLAG = 13, SYNC_AIV_ONLY_ALL = 14, SYNC_FLAG_ID_MAX = 16;
constexpr int32_t SYNCALL_SOFT_WORKSPACE_INT32 = 16, SYNCALL_SOFT_BACKOFF_THRESHOLD = 16;
constexpr int32_t SYNCALL_SOFT_MAX_POLL_ITERATIONS = 1000000;
inline namespace GlobalTensorDim {
constexpr int DIM_0 = 0, DIM_1 = 1, DIM_2 = 2, DIM_3 = 3, DIM_4 = 4, TOTAL_DIM = 5;
}
struct TileConfig {
  static constexpr int alignedSize = 32, fixedRowSize = 16, fixedColSize = 16, fractalABSize = 512, fractalCSize = 1024;
};

// ------------------------------------------------------------------------------------------------ type.hpp
 enum class TileType { Vec, Mat, Left, Right, Acc, Bias, Scaling, ScaleLeft, ScaleRight, Ctrl };
enum class BLayout { RowMajor, ColMajor };
enum class SLayout { NoneBox, RowMajor, ColMajor };
enum class Layout {
  ND, DN, NZ, SCALE, MX_A_ND, MX_A_DN, MX_A_ZZ, MX_B_ND, MX_B_DN, MX_B_NN, HIF4_A_ZZ, HIF4_B_NN, NC1HWC0, GNC1HWC0, NCHW,
  GNCHW, NHWC, NDC1HWC0, NCDHW, FRACTAL_Z, FRACTAL_Z_S16S8, FRACTAL_Z_3D, MAX
};
enum class TileLayoutCustom { ND, DN, NZ, ZN, ZZ, NONE };
enum class PadValue : uint64_t { Null, Zero, Max, Min, CustomBase = 1ull << 32 };
enum class CompactMode { Null, Normal, RowPlusOne, RowAlignedPadding };
enum class PrintFormat { Width8_Precision4, Width8_Precision2, Width10_Precision6 };
enum class RoundMode { CAST_NONE, CAST_RINT, CAST_ROUND, CAST_FLOOR, CAST_CEIL, CAST_TRUNC, CAST_ODD };
enum class SaturationMode { ON, OFF };
enum class CastMode { EXPAND, ROUND, ROUND_SAT, ROUND_PART, ROUND_SAT_PART, SAT_PART, SAT_ROUND };
enum class CmpMode { EQ, NE, LT, LE, GT, GE };
enum class MaskPattern { P0101 = 1, P1010, P0001, P0010, P0100, P1000, P1111 };
enum class AtomicType { AtomicNone, AtomicAdd };
enum class TCopyMode { SHALLOW_COPY, DEEP_COPY };
enum class TFillPadMode { Normal, InPlace, Expand };
enum class TInsertMode : uint8_t { SPLIT2 = 2, SPLIT4 };
enum class QuantType { MXFP8, MXFP4_E2M1, INT8_SYM, INT8_ASYM };
enum class QuantScaleAlg { OCP, NV };
enum class MxQuantAlg { OcpMxFp8E4M3, NvMxFp8E4M3, OcpMxFp4E2M1, NvMxFp4E2M1, Hif4 };
enum class VecStoreMode { ND, NZ };
enum class STPhase { Unspecified, Partial = 2, Final };
enum class AccPhase { Unspecified, Unknown = Unspecified, Partial = 2, Final };
enum class AccToVecMode { SingleModeVec0, SingleModeVec1, DualModeSplitM, DualModeSplitN };
enum class ReluPreMode { NoRelu, NormalRelu };
enum class SetFmatrixMode { FMATRIX_A_AUTO, FMATRIX_B_AUTO, FMATRIX_A_MANUAL, FMATRIX_B_MANUAL };
enum class SyncAllMode { Hard, Soft };
enum class SyncCoreType { AIVOnly, AICOnly, Mix };
enum class HistByte { BYTE_0, BYTE_1, BYTE_2, BYTE_3 };
enum class ScatterAxis { SCATTER_ROW, SCATTER_COL };
enum class ScatterAtomicOp { None, Add, Max, Min };
enum class ScatterOOB { Undefined, Skip, Clamp, Wrap };
enum class ScatterConflict { Last, Default };
enum class GatherAxis { GATHER_ROW, GATHER_COL };
enum class GatherOOB { Undefined, Clamp, Wrap, Zero };
enum class Coalesce { Row, Elem };
enum VFImplKind {
  VFIMPL_DEFAULT, VFIMPL_1D_NO_POST_UPDATE, VFIMPL_2D_NO_POST_UPDATE, VFIMPL_1D_POST_UPDATE, VFIMPL_2D_POST_UPDATE
};
#define CASTSIM_ALGORITHM(NAME) enum class NAME { DEFAULT, HIGH_PRECISION };
CASTSIM_ALGORITHM(PowAlgorithm) CASTSIM_ALGORITHM(DivAlgorithm) CASTSIM_ALGORITHM(SqrtAlgorithm)
CASTSIM_ALGORITHM(RsqrtAlgorithm) CASTSIM_ALGORITHM(RecipAlgorithm) CASTSIM_ALGORITHM(ExpAlgorithm)
CASTSIM_ALGORITHM(LogAlgorithm) CASTSIM_ALGORITHM(FmodAlgorithm) CASTSIM_ALGORITHM(FmodSAlgorithm)
CASTSIM_ALGORITHM(RemAlgorithm) CASTSIM_ALGORITHM(RemSAlgorithm)

using TRandomKey = uint32_t[PTO_RANDOM_KEY_SIZE];
using TRandomCounter = uint32_t[PTO_RANDOM_COUNTER_SIZE];
template <typename T> struct FloatIntUnion { using UIntegerType = std::conditional_t<sizeof(T) == 4, uint32_t, uint16_t>; };
using FloatUnion = FloatIntUnion<float>;
template <typename T> using UIntegerType = typename FloatIntUnion<T>::UIntegerType;

// ------------------------------------------------------------------------------------------------ event.hpp
 enum class Op : uint16_t {
  TLOAD, TSTORE_VEC, SCALAR, TRESHAPE, VECTOR, TADD, TADDS, TAXPY, TSUB, TMUL, TMULS, TDIV, TDIVS, TMIN, TMINS, TMAX, TAND,
  TOR, TSEL, TSHL, TSHR, TEXP, TSELS, TSQRT, TRSQRT, TEXPANDS, TEXPANDS_MAT, TPARTADD, TPARTMUL, TPARTMAX, TPARTMIN, TPOW,
  TPOWS, TCMPS, TMRGSORT, TSORT32, TCI, TGATHER, TGATHERB, TCVT, TROWSUM, TROWPROD, TROWMAX, TROWMIN, TROWEXPAND, TRANDOM,
  TCOLSUM, TCOLPROD, TCOLMAX, TCOLMIN, TTRANS, TTRI, TREM, TFMOD, TREMS, TFMODS, TSUBS, TMAXS, TLRELU, TPRELU, TMOV_V2V,
  TMOV_V2M, TEXTRACT_V2M, TMOV_M2B, TMOV_M2L, TMOV_M2R, TMOV_M2S, TMOV_A2V, TMOV_A2M, TSTORE_ACC, TSTORE_MAT, TMATMUL,
  TGEMV, TEXTRACT_M2LR, TANDS, TORS, TSHLS, TSHRS, TXOR, TXORS, TEXTRACT_A2M, TINSERT_A2M, TIMG2COL, SETFMATRIX,
  SET_IMG2COL_RPT, SET_IMG2COL_PADDING, TCONCAT, TDEQUANT, TADDDEQRELU, TABS, TNEG, TRELU, TNOT, TLOG, TRECIP, TCMP,
  TSCATTER, TCOLEXPAND, TCOLEXPANDDIV, TCOLEXPANDMUL, TCOLEXPANDADD, TCOLEXPANDMAX, TCOLEXPANDMIN, TCOLEXPANDSUB,
  TCOLEXPANDEXPDIF, TROWEXPANDDIV, TROWEXPANDMUL, TROWEXPANDSUB, TROWEXPANDADD, TROWEXPANDMAX, TROWEXPANDMIN,
  TROWEXPANDEXPDIF, TPAIRREDUCESUM, TSUBRELUCONV, TADDRELUCONV, TFUSEDMULADD, TMULADDDST, TSUBRELU, TFUSEDMULADDRELU,
  TPARTARGMAX, TPARTARGMIN, TCOLARGMAX, TCOLARGMIN, TROWARGMAX, TROWARGMIN, TPREFETCH, TFILLPAD_VEC, TFILLPAD_MAT,
  MGATHER_VEC, MGATHER_MAT, MSCATTER, TQUANT, THISTOGRAM, TINTERLEAVE, TDEINTERLEAVE, OP_COUNT,
  // Of other states of the library.
  TADDC, TSUBC, TADDSC, TSUBSC, TPACK, TMOV, TEXTRACT, TINSERT, MGATHER, TFILLPAD, TSTORE, TPRINT, ALL
};

}  // namespace pto
