#ifndef NORM_BASE_H_
#define NORM_BASE_H_
#include "kernel_operator.h"

using namespace AscendC;
#if __CCE_AICORE__ == 220 || (defined(__NPU_ARCH__) && __NPU_ARCH__ == 3003)
constexpr bool HAS_VCADD = true;
#else
constexpr bool HAS_VCADD = false;
#endif
constexpr int32_t ELEM_PER_REP_FP32 = 64; // ONE_REPEAT_BYTE_SIZE / sizeof(float)
#define ROUND_UP32(x) (((x) + ONE_BLK_SIZE - 1) / ONE_BLK_SIZE * ONE_BLK_SIZE)

struct NormQuantTilingData {
    uint32_t rows = 0;
    uint32_t numLastDim = 0;
    float avgFactor = 0;
    float epsilon = 1e-5f;
};

template <typename Tp, Tp v>
struct integral_constant {
    static constexpr Tp value = v;
};

__aicore__ inline uint32_t CEIL_DIV(uint32_t x, uint32_t y) { return y > 0 ? (x + y - 1) / y : 0; }

// The sum of a row: whole repeats are added into the first, then one reduction.
__aicore__ inline void ReduceSumCustom(const LocalTensor<float> &dst, const LocalTensor<float> &src, const LocalTensor<float> &work, int32_t count)
{
    int32_t repeats = count / ELEM_PER_REP_FP32, tail = count % ELEM_PER_REP_FP32;
    if (likely(repeats > 1)) {
        Add(src, src[ELEM_PER_REP_FP32], src, ELEM_PER_REP_FP32, repeats - 1, {1, 1, 1, 0, 8, 0});
        PipeBarrier<PIPE_V>();
    }
    if (unlikely(tail != 0)) {
        Add(src, src[repeats * ELEM_PER_REP_FP32], src, tail, 1, {1, 1, 1, 0, 8, 0});
        PipeBarrier<PIPE_V>();
    }
    if ASCEND_IS_AIV {
        AscendCUtils::SetMask<float>(ELEM_PER_REP_FP32);
        WholeReduceSum<float, false>(dst, src, MASK_PLACEHOLDER, 1, 0, 1, 0);
    }
    PipeBarrier<PIPE_V>();
}

__aicore__ inline float ReduceMaxCustom(const LocalTensor<float> &src, int32_t count)
{
    int32_t repeats = count / ELEM_PER_REP_FP32, tail = count % ELEM_PER_REP_FP32;
    BinaryRepeatParams repeatParams;
    repeatParams.src0RepStride = DEFAULT_REPEAT_STRIDE;
    repeatParams.src0BlkStride = DEFAULT_BLK_STRIDE;
    repeatParams.src1RepStride = 0;
    repeatParams.dstRepStride = 0;
    repeatParams.dstBlkStride = 1;
    if (repeats > 1) {
        Max(src, src[ELEM_PER_REP_FP32], src, ELEM_PER_REP_FP32, repeats - 1, repeatParams);
        PipeBarrier<PIPE_V>();
    }
    if (tail > 0) {
        Max(src, src[repeats * ELEM_PER_REP_FP32], src, tail, 1, repeatParams);
        PipeBarrier<PIPE_V>();
    }
    WholeReduceMax(src, src, ELEM_PER_REP_FP32, 1, 8, 1, 8, ReduceOrder::ORDER_ONLY_VALUE);
    PipeBarrier<PIPE_V>();
    event_t event = static_cast<event_t>(GetTPipePtr()->FetchEventID(HardEvent::V_S));
    SetFlag<HardEvent::V_S>(event);
    WaitFlag<HardEvent::V_S>(event);
    return src.GetValue(0);
}

__aicore__ inline void RoundFloat2Int8(LocalTensor<int8_t> &dst, LocalTensor<float> &src, int32_t size)
{
    Cast(src.ReinterpretCast<int32_t>(), src, RoundMode::CAST_RINT, size);
    PipeBarrier<PIPE_V>();
    SetDeqScale((half)1.000000e+00f);
    PipeBarrier<PIPE_V>();
    Cast(src.ReinterpretCast<half>(), src.ReinterpretCast<int32_t>(), RoundMode::CAST_NONE, size);
    PipeBarrier<PIPE_V>();
    Cast(dst, src.ReinterpretCast<half>(), RoundMode::CAST_TRUNC, size);
}

template <typename T>
class NormBase {
public:
    __aicore__ inline int64_t Span(uint32_t rows) const
    {
        uint32_t each = CEIL_DIV(rows, GetBlockNum());
        return Std::min(int64_t(each), int64_t(rows) - First(rows));
    }
    __aicore__ inline int64_t First(uint32_t rows) const { return int64_t(CEIL_DIV(rows, GetBlockNum())) * GetBlockIdx(); }
};
#endif
