// Limits of a tensor by two tensors of one element, as products write element-wise operators: a template entry, a
// plain structure as tiling, a class of the element type, bf16 by way of f32.
#include "kernel_operator.h"
#include "lib/matmul_intf.h"

struct ClipValueTilingData {
  int64_t totalLength;
  int64_t coreLength;
  int64_t tileLength;
};

#define TPL_SCH_MODE_0 0
#define TPL_SCH_MODE_1 1
ASCENDC_TPL_ARGS_DECL(ClipValue, ASCENDC_TPL_UINT_DECL(schMode, 1, ASCENDC_TPL_UI_LIST, TPL_SCH_MODE_0, TPL_SCH_MODE_1));
ASCENDC_TPL_SEL(ASCENDC_TPL_ARGS_SEL(ASCENDC_TPL_UINT_SEL(schMode, ASCENDC_TPL_UI_LIST, TPL_SCH_MODE_0, TPL_SCH_MODE_1)));

namespace NsClipValue {
using namespace AscendC;
constexpr int32_t BUFFER_NUM = 2;

template <typename T, uint32_t MODE>
class KernelClipValue {
public:
    __aicore__ inline KernelClipValue(){};
    __aicore__ inline void Init(GM_ADDR x, GM_ADDR low, GM_ADDR high, GM_ADDR y, const ClipValueTilingData *tilingData, TPipe *pipeIn)
    {
        ASSERT(GetBlockNum() != 0 && "block dim can not be zero!");
        pipe = pipeIn;
        tileLength = tilingData->tileLength;
        int64_t start = tilingData->coreLength * AscendC::GetBlockIdx();
        coreLength = (GetBlockIdx() == GetBlockNum() - 1) ? tilingData->totalLength - start : tilingData->coreLength;
        xGm.SetGlobalBuffer((__gm__ T *)x + start, coreLength);
        yGm.SetGlobalBuffer((__gm__ T *)y + start, coreLength);
        lowGm.SetGlobalBuffer((__gm__ T *)low, 1);
        highGm.SetGlobalBuffer((__gm__ T *)high, 1);
        pipe->InitBuffer(inQueueX, BUFFER_NUM, tileLength * sizeof(T));
        pipe->InitBuffer(outQueueY, BUFFER_NUM, tileLength * sizeof(T));
        pipe->InitBuffer(lowBuf, tileLength * sizeof(float));
        pipe->InitBuffer(highBuf, tileLength * sizeof(float));
        if constexpr (std::is_same_v<T, bfloat16_t>) {
            pipe->InitBuffer(castBuf, tileLength * sizeof(float));
        }
    }
    __aicore__ inline void Process()
    {
        if constexpr (std::is_same<T, bfloat16_t>::value) {
            float lowValue = ToFloat(lowGm.GetValue(0));
            float highValue = ToFloat(highGm.GetValue(0));
            Duplicate(lowBuf.Get<float>(), lowValue, static_cast<int32_t>(tileLength));
            Duplicate<float>(highBuf.Get<float>(), highValue, tileLength);
        } else {
            T lowValue = lowGm.GetValue(0);
            Duplicate(lowBuf.Get<T>(), lowValue, tileLength);
            Duplicate<T>(highBuf.Get<T>(), highGm.GetValue(0), tileLength);
        }
        int64_t loopCount = (coreLength + tileLength - 1) / tileLength;
        for (int64_t i = 0; i < loopCount; i++) {
            int64_t length = (i == loopCount - 1) ? coreLength - i * tileLength : tileLength;
            CopyIn(i, length);
            Compute(length);
            CopyOut(i, length);
        }
    }

private:
    __aicore__ inline void CopyIn(int64_t progress, int64_t length)
    {
        LocalTensor<T> xLocal = inQueueX.AllocTensor<T>();
        DataCopyExtParams copyParams{1, static_cast<uint32_t>(length * sizeof(T)), 0, 0, 0};
        DataCopyPadExtParams<T> padParams{true, 0, 0, 0};
        DataCopyPad(xLocal, xGm[progress * tileLength], copyParams, padParams);
        inQueueX.EnQue(xLocal);
    }
    __aicore__ inline void Compute(int64_t length)
    {
        LocalTensor<T> xLocal = inQueueX.DeQue<T>();
        LocalTensor<T> yLocal = outQueueY.AllocTensor<T>();
        if constexpr (std::is_same_v<T, bfloat16_t>) {
            LocalTensor<float> wide = castBuf.Get<float>();
            Cast(wide, xLocal, RoundMode::CAST_NONE, length);
            Max(wide, wide, lowBuf.Get<float>(), length);
            Min(wide, wide, highBuf.Get<float>(), length);
            Cast(yLocal, wide, RoundMode::CAST_RINT, length);
        } else {
            AscendC::Max(yLocal, xLocal, lowBuf.Get<T>(), length);
            AscendC::Min(yLocal, yLocal, highBuf.Get<T>(), length);
        }
        outQueueY.EnQue<T>(yLocal);
        inQueueX.FreeTensor(xLocal);
    }
    __aicore__ inline void CopyOut(int64_t progress, int64_t length)
    {
        LocalTensor<T> yLocal = outQueueY.DeQue<T>();
        DataCopyParams copyParams{1, static_cast<uint16_t>(length * sizeof(T)), 0, 0};
        DataCopyPad(yGm[progress * tileLength], yLocal, copyParams);
        outQueueY.FreeTensor(yLocal);
    }

private:
    TPipe *pipe = nullptr;
    TQue<QuePosition::VECIN, BUFFER_NUM> inQueueX;
    TQue<QuePosition::VECOUT, BUFFER_NUM> outQueueY;
    TBuf<QuePosition::VECCALC> lowBuf, highBuf, castBuf;
    GlobalTensor<T> xGm, yGm, lowGm, highGm;
    int64_t coreLength = 0;
    int64_t tileLength = 0;
};
} // namespace NsClipValue

template <uint32_t schMode>
__global__ __aicore__ void clip_value(GM_ADDR x, GM_ADDR low, GM_ADDR high, GM_ADDR y, GM_ADDR workspace, GM_ADDR tiling)
{
    REGISTER_TILING_DEFAULT(ClipValueTilingData);
    KERNEL_TASK_TYPE_DEFAULT(KERNEL_TYPE_AIV_ONLY);
    GET_TILING_DATA_WITH_STRUCT(ClipValueTilingData, tilingData, tiling);
    AscendC::TPipe pipe;
    NsClipValue::KernelClipValue<DTYPE_X, schMode> op;
    op.Init(x, low, high, y, &tilingData, &pipe);
    op.Process();
}
