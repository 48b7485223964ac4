// The gradient where the argument lies between two limits: comparisons with scalars, bits joined, a choice of tensors.
#include "kernel_operator.h"

namespace NsHardSigmoidGrad {
using namespace AscendC;
constexpr uint32_t ALIGN_256 = 256;
template <typename T> constexpr uint32_t ALIGNED = ALIGN_256 / sizeof(T);

struct HardSigmoidGradTilingData {
    int64_t smallCoreDataNum = 0;
    int64_t ubPartDataNum = 1;
    float alpha = 0.16666667f;
    float beta = 0.5f;
};

template <typename TYPE_X>
class HardSigmoidGrad {
public:
    __aicore__ inline HardSigmoidGrad(){};
    __aicore__ inline void Init(GM_ADDR grad, GM_ADDR x, GM_ADDR y, const HardSigmoidGradTilingData &tilingData)
    {
        this->t = tilingData;
        gradGm.SetGlobalBuffer((__gm__ TYPE_X *)grad, t.smallCoreDataNum);
        xGm.SetGlobalBuffer((__gm__ TYPE_X *)x, t.smallCoreDataNum);
        yGm.SetGlobalBuffer((__gm__ TYPE_X *)y, t.smallCoreDataNum);
        pipe.InitBuffer(inQueueX, 2, t.ubPartDataNum * sizeof(TYPE_X));
        pipe.InitBuffer(inQueueGrad, 2, t.ubPartDataNum * sizeof(TYPE_X));
        pipe.InitBuffer(outQueue, 2, t.ubPartDataNum * sizeof(TYPE_X));
        pipe.InitBuffer(maskBuf, t.ubPartDataNum / 8);
        pipe.InitBuffer(maskBuf2, t.ubPartDataNum / 8);
        pipe.InitBuffer(zeroBuf, t.ubPartDataNum * sizeof(float));
        pipe.InitBuffer(castX, t.ubPartDataNum * sizeof(float));
        pipe.InitBuffer(castGrad, t.ubPartDataNum * sizeof(float));
    }
    __aicore__ inline void Process()
    {
        for (int64_t at = 0; at < t.smallCoreDataNum; at += t.ubPartDataNum) {
            this->n = t.smallCoreDataNum - at < t.ubPartDataNum ? t.smallCoreDataNum - at : t.ubPartDataNum;
            CopyIn(at);
            Compute();
            LocalTensor<TYPE_X> out = outQueue.DeQue<TYPE_X>();
            DataCopyPad(yGm[at], out, {1, static_cast<uint32_t>(n * sizeof(TYPE_X)), 0, 0, 0});
            outQueue.FreeTensor(out);
        }
    }

private:
    __aicore__ inline void CopyIn(int64_t at)
    {
        LocalTensor<TYPE_X> x = inQueueX.AllocTensor<TYPE_X>();
        LocalTensor<TYPE_X> grad = inQueueGrad.AllocTensor<TYPE_X>();
        uint32_t bytes = n * sizeof(TYPE_X);
        uint8_t rightPad = (32 - bytes % 32) % 32 / sizeof(TYPE_X);
        DataCopyPadExtParams<TYPE_X> pad{true, 0, rightPad, static_cast<TYPE_X>(0)};
        DataCopyPad(x, xGm[at], {static_cast<uint16_t>(1), bytes, 0, 0, 0}, pad);
        DataCopyPad(grad, gradGm[at], {static_cast<uint16_t>(1), bytes, 0, 0, 0}, pad);
        inQueueX.EnQue(x);
        inQueueGrad.EnQue(grad);
    }
    __aicore__ inline void Compute()
    {
        LocalTensor<TYPE_X> x = inQueueX.DeQue<TYPE_X>(), grad = inQueueGrad.DeQue<TYPE_X>();
        LocalTensor<TYPE_X> out = outQueue.AllocTensor<TYPE_X>();
        LocalTensor<uint8_t> mask = maskBuf.Get<uint8_t>(), mask2 = maskBuf2.Get<uint8_t>();
        LocalTensor<float> wide = castX.Get<float>(), wideGrad = castGrad.Get<float>(), zero = zeroBuf.Get<float>();
        uint32_t whole = (n + ALIGNED<float> - 1) / ALIGNED<float> * ALIGNED<float>;
        Cast(wide, x, RoundMode::CAST_NONE, n);
        Cast(wideGrad, grad, RoundMode::CAST_NONE, n);
        Muls(wide, wide, t.alpha, whole);
        Adds(wide, wide, t.beta, whole);
        CompareScalar(mask, wide, 0.0f, CMPMODE::GT, whole);
        CompareScalar(mask2, wide, static_cast<float>(1), AscendC::CMPMODE::LT, whole);
        And(mask.ReinterpretCast<uint16_t>(), mask.ReinterpretCast<uint16_t>(), mask2.ReinterpretCast<uint16_t>(),
            static_cast<int32_t>(whole / 16));
        Muls(wideGrad, wideGrad, t.alpha, n);
        Duplicate(zero, 0.0f, n);
        Select(wideGrad, mask, wideGrad, zero, SELMODE::VSEL_TENSOR_TENSOR_MODE, n);
        if constexpr (IsSameType<TYPE_X, bfloat16_t>::value || std::is_same_v<TYPE_X, half>) {
            Cast(out, wideGrad, std::is_same_v<TYPE_X, half> ? RoundMode::CAST_NONE : RoundMode::CAST_RINT, n);
        } else {
            DataCopy(out, wideGrad.template ReinterpretCast<TYPE_X>(), n);
        }
        outQueue.EnQue<TYPE_X>(out);
        inQueueX.FreeTensor(x);
        inQueueGrad.FreeTensor(grad);
    }

private:
    TPipe pipe;
    HardSigmoidGradTilingData t;
    TQue<QuePosition::VECIN, 2> inQueueX, inQueueGrad;
    TQue<QuePosition::VECOUT, 2> outQueue;
    TBuf<QuePosition::VECCALC> maskBuf, maskBuf2, zeroBuf, castX, castGrad;
    GlobalTensor<TYPE_X> gradGm, xGm, yGm;
    int64_t n = 0;
};
} // namespace NsHardSigmoidGrad

template <uint32_t schMode>
__global__ __aicore__ void hard_sigmoid_grad(GM_ADDR grad, GM_ADDR x, GM_ADDR y, GM_ADDR workspace, GM_ADDR tiling)
{
    REGISTER_TILING_DEFAULT(NsHardSigmoidGrad::HardSigmoidGradTilingData);
    GET_TILING_DATA_WITH_STRUCT(NsHardSigmoidGrad::HardSigmoidGradTilingData, tilingData, tiling);
    if constexpr (schMode == 0) {
        NsHardSigmoidGrad::HardSigmoidGrad<half> op;
        op.Init(grad, x, y, tilingData);
        op.Process();
    }
    if constexpr (schMode == 1) {
        NsHardSigmoidGrad::HardSigmoidGrad<bfloat16_t> op;
        op.Init(grad, x, y, tilingData);
        op.Process();
    }
}
