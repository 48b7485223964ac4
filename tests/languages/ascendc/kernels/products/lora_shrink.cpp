// A row of activations by the matrix of its adapter, one product after the other; entries by a macro, launched by host code.
#include "kernel_operator.h"
#include "types.h"

template <typename scalar_t>
class LoraShrink {
public:
    using X_T = scalar_t;
    using W_T = scalar_t;
    using Y_T = float;
    static constexpr uint64_t BUFFER_NUM = 1;
    static constexpr uint64_t TILE_LENGTH = 256;

public:
    __aicore__ inline LoraShrink(AscendC::TPipe *pipe) : pipe_(pipe) {}
    __aicore__ inline void Init(__gm__ void *x, __gm__ void *weight, __gm__ void *indices, uint32_t indicesSize, __gm__ void *y,
                                uint32_t batchSize, uint32_t numTokensPerCore, uint32_t inputHiddenDim, uint32_t maxLoRARank, float scale)
    {
        batchSize_ = batchSize;
        numTokensPerCore_ = numTokensPerCore;
        inputHiddenDim_ = inputHiddenDim;
        maxLoRARank_ = maxLoRARank;
        scale_ = scale;
        singleLoRAWeightLen_ = inputHiddenDim_ * maxLoRARank_;
        xGm_.SetGlobalBuffer((__gm__ X_T *)x);
        yGm_.SetGlobalBuffer((__gm__ Y_T *)y);
        wGm_.SetGlobalBuffer((__gm__ W_T *)weight);
        indicesGm_.SetGlobalBuffer((__gm__ int64_t *)indices, indicesSize);
        pipe_->InitBuffer(inQueueX_, BUFFER_NUM, TILE_LENGTH * sizeof(X_T));
        pipe_->InitBuffer(inQueueW_, BUFFER_NUM, TILE_LENGTH * sizeof(W_T));
        pipe_->InitBuffer(tmpBufferX_, TILE_LENGTH * sizeof(float));
        pipe_->InitBuffer(tmpBufferW_, TILE_LENGTH * sizeof(float));
        pipe_->InitBuffer(outQueueY_, 1, maxLoRARank_ * sizeof(Y_T));
        pipe_->InitBuffer(outBufferY_, maxLoRARank_ * sizeof(float));
    }
    __aicore__ inline void Process()
    {
        int64_t blockIdx = AscendC::GetBlockIdx();
        int64_t startIdx = blockIdx * numTokensPerCore_;
        int64_t endIdx = startIdx + numTokensPerCore_;
        if (endIdx > batchSize_) {
            endIdx = batchSize_;
        }
        for (int64_t idx = startIdx; idx < endIdx; idx++) {
            reqLoRAIndex_ = indicesGm_.GetValue(idx);
            if (reqLoRAIndex_ < 0) {
                continue;
            }
            reqLoRAWeightOffset_ = reqLoRAIndex_ * singleLoRAWeightLen_;
            ProcessImpl(idx);
            Scale();
            CopyOut(idx);
        }
    }

private:
    __aicore__ inline void ProcessImpl(const int64_t idx)
    {
        AscendC::LocalTensor<float> yOutLocal = outBufferY_.Get<float>();
        for (int i = 0; i < maxLoRARank_; i++) {
            float acc(0);
            for (int32_t j = 0; j < (inputHiddenDim_ + TILE_LENGTH - 1) / TILE_LENGTH; j++) {
                int32_t n = j * TILE_LENGTH + TILE_LENGTH > inputHiddenDim_ ? inputHiddenDim_ - j * TILE_LENGTH : TILE_LENGTH;
                CopyIn(inQueueX_, xGm_[inputHiddenDim_ * idx + j * TILE_LENGTH], n);
                CopyIn(inQueueW_, wGm_[reqLoRAWeightOffset_ + i * inputHiddenDim_ + j * TILE_LENGTH], n);
                AscendC::LocalTensor<X_T> xLocal = inQueueX_.DeQue<X_T>();
                AscendC::LocalTensor<W_T> wLocal = inQueueW_.DeQue<W_T>();
                AscendC::LocalTensor<float> xTmp = tmpBufferX_.Get<float>(), wTmp = tmpBufferW_.Get<float>();
                Cast(xTmp, xLocal, AscendC::RoundMode::CAST_NONE, n);
                Cast(wTmp, wLocal, AscendC::RoundMode::CAST_NONE, n);
                AscendC::PipeBarrier<PIPE_V>();
                inQueueX_.FreeTensor(xLocal);
                inQueueW_.FreeTensor(wLocal);
                Mul(xTmp, xTmp, wTmp, n);
                AscendC::PipeBarrier<PIPE_V>();
                ReduceSum<float>(xTmp, xTmp, xTmp, n);
                AscendC::PipeBarrier<PIPE_V>();
                acc += xTmp.GetValue(0);
            }
            yOutLocal.SetValue(i, acc);
        }
    }
    template <typename Q, typename T>
    __aicore__ inline void CopyIn(Q &queue, const AscendC::GlobalTensor<T> &gm, const int32_t n)
    {
        AscendC::LocalTensor<T> local = queue.template AllocTensor<T>();
        DataCopy(local, gm, n);
        queue.EnQue(local);
    }
    __aicore__ inline void Scale()
    {
        AscendC::LocalTensor<float> yLocal = outBufferY_.Get<float>();
        AscendC::LocalTensor<float> yOutLocal = outQueueY_.AllocTensor<float>();
        Muls(yOutLocal, yLocal, scale_, maxLoRARank_);
        AscendC::PipeBarrier<PIPE_V>();
        outQueueY_.EnQue<float>(yOutLocal);
    }
    __aicore__ inline void CopyOut(const int64_t idx)
    {
        AscendC::LocalTensor<Y_T> yOutLocal = outQueueY_.DeQue<Y_T>();
        DataCopy(yGm_[maxLoRARank_ * idx], yOutLocal, maxLoRARank_);
        outQueueY_.FreeTensor(yOutLocal);
    }

private:
    AscendC::TPipe *pipe_;
    AscendC::TQue<AscendC::TPosition::VECIN, BUFFER_NUM> inQueueX_, inQueueW_;
    AscendC::TQue<AscendC::TPosition::VECOUT, BUFFER_NUM> outQueueY_;
    AscendC::TBuf<AscendC::QuePosition::VECCALC> tmpBufferX_, tmpBufferW_, outBufferY_;
    AscendC::GlobalTensor<X_T> xGm_;
    AscendC::GlobalTensor<W_T> wGm_;
    AscendC::GlobalTensor<int64_t> indicesGm_;
    AscendC::GlobalTensor<Y_T> yGm_;
    uint32_t batchSize_, numTokensPerCore_, inputHiddenDim_, maxLoRARank_, singleLoRAWeightLen_;
    float scale_;
    int64_t reqLoRAIndex_;
    uint64_t reqLoRAWeightOffset_;
};

#define LORA_SHRINK_TYPE_DECLARE(TYPE)                                                                                    \
    extern "C" __global__ __aicore__ void lora_shrink_##TYPE(__gm__ void *x, __gm__ void *weight, __gm__ void *indices,   \
                                                             uint32_t indicesSize, __gm__ void *y, uint32_t batchSize,    \
                                                             uint32_t numTokensPerCore, uint32_t inputHiddenDim,          \
                                                             uint32_t maxLoRARank, float scale)                           \
    {                                                                                                                     \
        AscendC::TPipe pipe;                                                                                              \
        LoraShrink<TYPE> op(&pipe);                                                                                       \
        op.Init(x, weight, indices, indicesSize, y, batchSize, numTokensPerCore, inputHiddenDim, maxLoRARank, scale);     \
        op.Process();                                                                                                     \
    }

// declare all dtype kernel
LORA_SHRINK_TYPE_DECLARE(half)
#if (__CCE_AICORE__ >= 220)
LORA_SHRINK_TYPE_DECLARE(bfloat16_t)
#endif

namespace vllm_ascend {
extern void lora_shrink_impl(AscendType type, void *stream, void *x, void *weight, void *indices, uint32_t indicesSize, void *y,
                             uint32_t batchSize, uint32_t numTokensPerCore, uint32_t inputHiddenDim, uint32_t maxLoRARank, float scale)
{
    uint32_t blockDim = (batchSize + numTokensPerCore - 1) / numTokensPerCore;
    if (type == AscendType::FP16) {
        lora_shrink_half<<<blockDim, nullptr, stream>>>(x, weight, indices, indicesSize, y, batchSize, numTokensPerCore, inputHiddenDim, maxLoRARank, scale);
    } else if (type == AscendType::BF16) {
#if (__CCE_AICORE__ >= 220)
        lora_shrink_bfloat16_t<<<blockDim, nullptr, stream>>>(x, weight, indices, indicesSize, y, batchSize, numTokensPerCore, inputHiddenDim, maxLoRARank, scale);
#endif
    } else {
        return;
    }
}
} // namespace vllm_ascend
