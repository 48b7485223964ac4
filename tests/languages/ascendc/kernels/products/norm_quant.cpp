// RMS norm and dynamic quantisation of rows: halving sums, masks of the register, flags by fetched ids, a cast to i8 by
// way of i32 and f16, the scale set for it.
#include "kernel_operator.h"
#include "norm_base.h"

template <typename T, int TILING_KEY>
class KernelNormQuant : public NormBase<T> {
    using NormBase<T>::Span;
public:
    __aicore__ inline KernelNormQuant(TPipe *pipe, const NormQuantTilingData *__restrict tiling) : Ppipe(pipe), tilingData_(tiling) {}
    __aicore__ inline void Init(GM_ADDR x, GM_ADDR gamma, GM_ADDR y, GM_ADDR scale)
    {
        numLastDim = tilingData_->numLastDim;
        rows = Span(tilingData_->rows);
        first = this->First(tilingData_->rows);
        xGm.SetGlobalBuffer((__gm__ T *)(x) + first * numLastDim);
        gammaGm.SetGlobalBuffer((__gm__ T *)gamma);
        yGm.SetGlobalBuffer((__gm__ int8_t *)(y) + first * numLastDim);
        scaleGm.SetGlobalBuffer((__gm__ float *)scale + first);
        aligned = AlignUp(numLastDim, ONE_BLK_SIZE);
        Ppipe->InitBuffer(inRowsQue, 2, aligned * sizeof(T));
        Ppipe->InitBuffer(outRowsQue, 2, aligned * sizeof(int8_t));
        Ppipe->InitBuffer(scalesQue, 1, ROUND_UP32(rows * sizeof(float)));
        Ppipe->InitBuffer(gammaBuf, aligned * sizeof(float));
        Ppipe->InitBuffer(xBuf, aligned * sizeof(float));
        Ppipe->InitBuffer(yBuf, aligned * sizeof(float));
        Ppipe->InitBuffer(reduceBuf, 64 * sizeof(float));
    }
    __aicore__ inline void Process()
    {
        gammaLocal = gammaBuf.Get<float>();
        LocalTensor<T> narrow = gammaLocal.ReinterpretCast<T>();
        DataCopyPad(narrow[aligned], gammaGm, {1, static_cast<uint16_t>(numLastDim * sizeof(T)), 0, 0}, {true, 0, 0, 0});
        event_t eventMte2V = static_cast<event_t>(GetTPipePtr()->FetchEventID(HardEvent::MTE2_V));
        SetFlag<HardEvent::MTE2_V>(eventMte2V);
        WaitFlag<HardEvent::MTE2_V>(eventMte2V);
        Cast(gammaLocal, narrow[aligned], RoundMode::CAST_NONE, numLastDim);
        PipeBarrier<PIPE_V>();
        LocalTensor<float> scales = scalesQue.template AllocTensor<float>();
        for (int32_t rid = 0; rid < rows; ++rid) {
            CopyIn(rid * numLastDim);
            Compute(rid, scales);
            CopyOut(rid * numLastDim);
        }
        scalesQue.EnQue(scales);
        scales = scalesQue.template DeQue<float>();
        DataCopyExtParams copyParams{static_cast<uint16_t>(1), static_cast<uint32_t>(rows * sizeof(float)), 0, 0, 0};
        DataCopyPad(scaleGm, scales, copyParams);
        scalesQue.FreeTensor(scales);
    }

private:
    __aicore__ inline void CopyIn(uint64_t offset)
    {
        LocalTensor<T> local = inRowsQue.template AllocTensor<T>();
        DataCopyParams params;
        params.blockCount = 1;
        params.blockLen = numLastDim * sizeof(T);
        params.srcStride = 0;
        params.dstStride = 0;
        DataCopyPadParams pad;
        DataCopyPad(local, xGm[offset], params, pad);
        inRowsQue.EnQue(local);
    }
    __aicore__ inline void Compute(int32_t rid, LocalTensor<float> &scales)
    {
        LocalTensor<T> local = inRowsQue.template DeQue<T>();
        LocalTensor<float> x = xBuf.Get<float>(), y = yBuf.Get<float>(), work = reduceBuf.Get<float>();
        Cast(x, local, RoundMode::CAST_NONE, numLastDim);
        PipeBarrier<PIPE_V>();
        inRowsQue.FreeTensor(local);
        Mul(y, x, x, numLastDim);
        PipeBarrier<PIPE_V>();
        Muls(y, y, tilingData_->avgFactor, numLastDim);
        PipeBarrier<PIPE_V>();
        ReduceSumCustom(work, y, work, numLastDim);
        event_t eventVS = static_cast<event_t>(GetTPipePtr()->FetchEventID(HardEvent::V_S));
        SetFlag<HardEvent::V_S>(eventVS);
        WaitFlag<HardEvent::V_S>(eventVS);
        float rstd = 1 / sqrt(work.GetValue(0) + tilingData_->epsilon);
        event_t eventSV = static_cast<event_t>(GetTPipePtr()->FetchEventID(HardEvent::S_V));
        SetFlag<HardEvent::S_V>(eventSV);
        WaitFlag<HardEvent::S_V>(eventSV);
        Muls(x, x, rstd, numLastDim);
        PipeBarrier<PIPE_V>();
        Mul(x, x, gammaLocal, numLastDim);
        PipeBarrier<PIPE_V>();
        Abs(y, x, numLastDim);
        PipeBarrier<PIPE_V>();
        float top = ReduceMaxCustom(y, numLastDim);
        float scale = top / 127.0f;
        scales.SetValue(rid, scale);
        SetFlag<HardEvent::S_V>(eventSV);
        WaitFlag<HardEvent::S_V>(eventSV);
        Duplicate(y, scale, numLastDim);
        PipeBarrier<PIPE_V>();
        Div(x, x, y, numLastDim);
        PipeBarrier<PIPE_V>();
        LocalTensor<int8_t> out = outRowsQue.template AllocTensor<int8_t>();
        RoundFloat2Int8(out, x, numLastDim);
        outRowsQue.EnQue(out);
    }
    __aicore__ inline void CopyOut(uint64_t offset)
    {
        LocalTensor<int8_t> out = outRowsQue.template DeQue<int8_t>();
        DataCopyExtParams params{1, (uint32_t)numLastDim, 0, 0, 0};
        DataCopyPad(yGm[offset], out, params);
        outRowsQue.FreeTensor(out);
    }
    TPipe *Ppipe = nullptr;
    const NormQuantTilingData *__restrict tilingData_;
    TQue<QuePosition::VECIN, 2> inRowsQue;
    TQue<QuePosition::VECOUT, 2> outRowsQue;
    TQue<QuePosition::VECOUT, 1> scalesQue;
    TBuf<TPosition::VECCALC> gammaBuf, xBuf, yBuf, reduceBuf;
    GlobalTensor<T> xGm, gammaGm;
    GlobalTensor<int8_t> yGm;
    GlobalTensor<float> scaleGm;
    LocalTensor<float> gammaLocal;
    uint32_t numLastDim, aligned;
    int64_t rows, first;
};

extern "C" __global__ __aicore__ void norm_quant(GM_ADDR x, GM_ADDR gamma, GM_ADDR y, GM_ADDR scale, GM_ADDR workspace, GM_ADDR tiling)
{
    TPipe pipe;
    GM_ADDR usrWorkspace = AscendC::GetUserWorkspace(workspace);
    GET_TILING_DATA_WITH_STRUCT(NormQuantTilingData, tilingDataIn, tiling);
    const NormQuantTilingData *__restrict tilingData = &tilingDataIn;
#define INIT_AND_PROCESS                \
    do {                                \
        op.Init(x, gamma, y, scale);    \
        op.Process();                   \
    } while (0)
    if (TILING_KEY_IS(0)) {
        KernelNormQuant<half, 0> op(&pipe, tilingData);
        INIT_AND_PROCESS;
    } else if (TILING_KEY_IS(1)) {
        KernelNormQuant<bfloat16_t, 1> op(&pipe, tilingData);
        INIT_AND_PROCESS;
    }
}
