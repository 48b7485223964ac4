// Pairs of neighbours turned by an angle: even and odd elements by patterns, and back by a scatter of offsets.
#include "kernel_operator.h"
using namespace AscendC;
struct InterleavedRopeTilingData { int64_t rows; int64_t dim; };

template <bool isBf16>
class InterleavedRope {
    using T = std::conditional_t<isBf16, bfloat16_t, half>;
public:
    __aicore__ inline void Init(TPipe *pipeIn, GM_ADDR x, GM_ADDR cos, GM_ADDR sin, GM_ADDR y, const InterleavedRopeTilingData *t)
    {
        pipe = pipeIn, tiling = t, dim = t->dim, half_ = t->dim / 2;
        xGm.SetGlobalBuffer((__gm__ T *)x);
        cosGm.SetGlobalBuffer((__gm__ T *)cos);
        sinGm.SetGlobalBuffer((__gm__ T *)sin);
        yGm.SetGlobalBuffer((__gm__ T *)y);
        pipe->InitBuffer(inQueueX, 2, 2 * dim * sizeof(float));
        pipe->InitBuffer(inQueueCosSin, 2, 3 * dim * sizeof(T));
        pipe->InitBuffer(outQueue, 2, dim * sizeof(float));
        pipe->InitBuffer(wsBuffer, 8 * dim * sizeof(float));
        wide = wsBuffer.GetWithOffset<float>(2 * dim, 0);
        angles = wsBuffer.GetWithOffset<float>(2 * dim, 2 * dim * sizeof(float));
        offsets = wsBuffer.GetWithOffset<uint32_t>(dim, 6 * dim * sizeof(float));
        for (uint32_t i = 0; i < half_; ++i) {
            offsets.SetValue(2 * i, i * sizeof(float));
            offsets.SetValue(2 * i + 1, (half_ + i) * sizeof(float));
        }
        event_t sv = static_cast<event_t>(GetTPipePtr()->FetchEventID<HardEvent::S_V>());
        SetFlag<HardEvent::S_V>(sv);
        WaitFlag<HardEvent::S_V>(sv);
    }
    __aicore__ inline void Process()
    {
        for (int64_t row = GetBlockIdx(); row < tiling->rows; row += GetBlockNum()) {
            LocalTensor<T> x = inQueueX.AllocTensor<T>(), a = inQueueCosSin.AllocTensor<T>();
            DataCopy(x, xGm[row * dim], dim);
            DataCopy(a, cosGm[row * half_], half_);
            DataCopy(a[dim], sinGm[row * half_], half_);
            inQueueX.EnQue(x);
            inQueueCosSin.EnQue(a);
            x = inQueueX.DeQue<T>(), a = inQueueCosSin.DeQue<T>();
            Cast(wide, x, RoundMode::CAST_NONE, dim);
            Cast(angles, a, RoundMode::CAST_NONE, half_);
            Cast(angles[dim], a[dim], RoundMode::CAST_NONE, half_);
            PipeBarrier<PIPE_V>();
            inQueueX.FreeTensor(x);
            inQueueCosSin.FreeTensor(a);
            uint64_t rsvdCnt = 0;
            LocalTensor<float> even = wsBuffer.Get<float>()[4 * dim], odd = even[half_], out = wide[dim], work = even[dim];
            GatherMask(even, wide, static_cast<uint8_t>(1), true, static_cast<uint32_t>(dim), {1, 1, 0, 0}, rsvdCnt);
            GatherMask(odd, wide, static_cast<uint8_t>(2), true, static_cast<uint32_t>(dim), {1, 1, 0, 0}, rsvdCnt);
            PipeBarrier<PIPE_V>();
            LocalTensor<float> cos = angles, sin = angles[dim];
            Mul(out, even, cos, half_);
            Mul(work, odd, sin, half_);
            PipeBarrier<PIPE_V>();
            Sub(out, out, work, half_);
            Mul(out[half_], odd, cos, half_);
            PipeBarrier<PIPE_V>();
            Mul(work, even, sin, half_);
            PipeBarrier<PIPE_V>();
            Add(out[half_], out[half_], work, half_);
            PipeBarrier<PIPE_V>();
            LocalTensor<float> merged = outQueue.AllocTensor<float>();
            Gather(merged, out, offsets, 0, dim);
            PipeBarrier<PIPE_V>();
            Cast(merged.template ReinterpretCast<T>(), merged, RoundMode::CAST_RINT, dim);
            outQueue.EnQue(merged);
            LocalTensor<T> y = outQueue.DeQue<T>();
            DataCopy(yGm[row * dim], y, dim);
            outQueue.FreeTensor(y);
        }
    }

private:
    TPipe *pipe;
    const InterleavedRopeTilingData *tiling;
    uint32_t dim, half_;
    TQue<QuePosition::VECIN, 1> inQueueX, inQueueCosSin;
    TQue<QuePosition::VECOUT, 1> outQueue;
    TBuf<TPosition::VECCALC> wsBuffer;
    LocalTensor<float> wide, angles;
    LocalTensor<uint32_t> offsets;
    GlobalTensor<T> xGm, cosGm, sinGm, yGm;
};

extern "C" __global__ __aicore__ void interleaved_rope(GM_ADDR x, GM_ADDR cos, GM_ADDR sin, GM_ADDR y, GM_ADDR workspace, GM_ADDR tiling)
{
    KERNEL_TASK_TYPE_DEFAULT(KERNEL_TYPE_MIX_AIV_1_0);
    AscendC::TPipe pipe;
    GET_TILING_DATA_WITH_STRUCT(InterleavedRopeTilingData, tilingDataIn, tiling);
    const auto *__restrict tilingData = &tilingDataIn;
#if (ORIG_DTYPE_X == DT_BF16)
    InterleavedRope<true> op;
#else
    InterleavedRope<false> op;
#endif
    op.Init(&pipe, x, cos, sin, y, tilingData);
    op.Process();
}
