// Rotary position embedding of heads: halves swapped by copies with strides, masks set by the kernel, sines for all heads.
#include "kernel_operator.h"
constexpr int32_t BUFFER_NUM = 1;
using AscendC::HardEvent;
using AscendC::SetFlag;
using AscendC::WaitFlag;

struct RotaryTilingData {
    int64_t tokens;
    int64_t heads;
    int64_t headDim;
};

template <typename T1, typename T2, bool IfCast>
class RotaryEmb {
public:
    __aicore__ inline RotaryEmb(AscendC::TPipe *pipe) : pipe_(pipe) {}
    __aicore__ inline void Init(GM_ADDR q, GM_ADDR cos, GM_ADDR sin, GM_ADDR out, const RotaryTilingData *tiling)
    {
        tiling_ = tiling;
        dim_ = tiling->headDim;
        width_ = tiling->heads * dim_;
        qGm_.SetGlobalBuffer((__gm__ T1 *)q);
        cosGm_.SetGlobalBuffer((__gm__ T1 *)cos);
        sinGm_.SetGlobalBuffer((__gm__ T1 *)sin);
        outGm_.SetGlobalBuffer((__gm__ T1 *)out);
        pipe_->InitBuffer(inQueueQ_, BUFFER_NUM, width_ * sizeof(T1));
        pipe_->InitBuffer(inQueueCos_, BUFFER_NUM, dim_ * sizeof(T1));
        pipe_->InitBuffer(inQueueSin_, BUFFER_NUM, dim_ * sizeof(T1));
        pipe_->InitBuffer(outQueue_, BUFFER_NUM, width_ * sizeof(T1));
        pipe_->InitBuffer(wideQ_, width_ * sizeof(T2));
        pipe_->InitBuffer(turned_, width_ * sizeof(T2));
        pipe_->InitBuffer(wideCos_, dim_ * sizeof(T2));
        pipe_->InitBuffer(wideSin_, dim_ * sizeof(T2));
    }
    __aicore__ inline void Process()
    {
        for (int64_t token = 0; token < tiling_->tokens; ++token) {
            CopyIn(token);
            Compute();
            auto out = outQueue_.template DeQue<T1>();
            DataCopy(outGm_[token * width_], out, width_);
            outQueue_.FreeTensor(out);
        }
    }

private:
    __aicore__ inline void CopyIn(int64_t token)
    {
        auto q = inQueueQ_.template AllocTensor<T1>();
        auto cos = inQueueCos_.template AllocTensor<T1>();
        auto sin = inQueueSin_.template AllocTensor<T1>();
        AscendC::DataCopy(q, qGm_[token * width_], width_);
        AscendC::DataCopy(cos, cosGm_[token * dim_], dim_);
        AscendC::DataCopy(sin, sinGm_[token * dim_], {1, uint16_t(dim_ * sizeof(T1) / 32), 0, 0});
        inQueueQ_.EnQue(q);
        inQueueCos_.EnQue(cos);
        inQueueSin_.EnQue(sin);
    }
    __aicore__ inline void Compute()
    {
        auto q = inQueueQ_.template DeQue<T1>(), cos = inQueueCos_.template DeQue<T1>(), sin = inQueueSin_.template DeQue<T1>();
        auto out = outQueue_.template AllocTensor<T1>();
        AscendC::LocalTensor<T2> wq = wideQ_.Get<T2>(), turned = turned_.Get<T2>(), wc = wideCos_.Get<T2>(), ws = wideSin_.Get<T2>();
        if constexpr (IfCast) {
            AscendC::Cast(wq, q, AscendC::RoundMode::CAST_NONE, width_);
            AscendC::Cast(wc, cos, AscendC::RoundMode::CAST_NONE, dim_);
            AscendC::Cast(ws, sin, AscendC::RoundMode::CAST_NONE, dim_);
        }
        AscendC::PipeBarrier<PIPE_V>();
        uint16_t half = dim_ / 2, blocks = half * sizeof(T2) / 32;
        // the halves of each head change places
        AscendC::DataCopy(turned, wq[half], {(uint16_t)tiling_->heads, blocks, blocks, blocks});
        AscendC::DataCopy(turned[half], wq, {(uint16_t)tiling_->heads, blocks, blocks, blocks});
        AscendC::PipeBarrier<PIPE_V>();
        AscendC::SetMaskNorm();
        AscendC::SetVectorMask<T2, AscendC::MaskMode::NORMAL>(0, half == 64 ? ~0ull : (1ull << half) - 1);
        uint8_t step = dim_ * sizeof(T2) / 32;
        AscendC::Muls<T2, false>(turned, turned, (T2)-1, AscendC::MASK_PLACEHOLDER, tiling_->heads, {1, 1, step, step});
        AscendC::PipeBarrier<PIPE_V>();
        AscendC::SetVectorMask<T2>(dim_);
        AscendC::Mul<T2, false>(wq, wq, wc, AscendC::MASK_PLACEHOLDER, tiling_->heads, {1, 1, 1, step, step, 0});
        AscendC::Mul<T2, false>(turned, turned, ws, AscendC::MASK_PLACEHOLDER, tiling_->heads, {1, 1, 1, step, step, 0});
        AscendC::ResetMask();
        AscendC::PipeBarrier<PIPE_V>();
        AscendC::Add(wq, wq, turned, width_);
        AscendC::PipeBarrier<PIPE_V>();
        AscendC::Cast(out, wq, AscendC::RoundMode::CAST_RINT, width_);
        outQueue_.EnQue(out);
        inQueueQ_.FreeTensor(q);
        inQueueCos_.FreeTensor(cos);
        inQueueSin_.FreeTensor(sin);
    }
    AscendC::TPipe *pipe_{nullptr};
    const RotaryTilingData *tiling_{nullptr};
    int64_t dim_{0}, width_{0};
    AscendC::TQue<AscendC::QuePosition::VECIN, BUFFER_NUM> inQueueQ_, inQueueCos_, inQueueSin_;
    AscendC::TQue<AscendC::QuePosition::VECOUT, BUFFER_NUM> outQueue_;
    AscendC::TBuf<AscendC::TPosition::VECCALC> wideQ_, turned_, wideCos_, wideSin_;
    AscendC::GlobalTensor<T1> qGm_, cosGm_, sinGm_, outGm_;
};

extern "C" __global__ __aicore__ void rotary(GM_ADDR q, GM_ADDR cos, GM_ADDR sin, GM_ADDR out, GM_ADDR workspace, GM_ADDR tiling)
{
    GET_TILING_DATA(tiling_data, tiling);
    const RotaryTilingData *__restrict t = &tiling_data;
    AscendC::TPipe pipe;
    if (TILING_KEY_IS(1)) {
        RotaryEmb<half, float, true> op(&pipe);
        op.Init(q, cos, sin, out, t);
        op.Process();
    }
#if (__CCE_AICORE__ > 200)
    else if (TILING_KEY_IS(2)) {
        RotaryEmb<bfloat16_t, float, true> op(&pipe);
        op.Init(q, cos, sin, out, t);
        op.Process();
    }
#endif
}
