// SwiGLU of halves of rows: copies with strides in blocks, classes chosen by keys, a queue of the calculation position.
#include "kernel_operator.h"
using namespace AscendC;
#ifndef DTYPE_X
#define DTYPE_X bfloat16_t
#endif
typedef struct SwiGluTilingData {
    uint32_t is32BAligned;
    uint32_t rowLen;
    uint32_t colLen;
    uint32_t baseRow;
} SwiGluTilingData;

template <typename inType, typename calcType, typename outType, uint16_t bufferNum>
class SwiGluSingle {
public:
    __aicore__ inline SwiGluSingle() {}
    __aicore__ inline void Init(GM_ADDR input, GM_ADDR output, SwiGluTilingData *tiling)
    {
        tiling_ = *tiling;
        beginGm.SetGlobalBuffer((__gm__ inType *)input);
        outGm.SetGlobalBuffer((__gm__ outType *)output);
        uint32_t size = tiling_.baseRow * tiling_.colLen;
        pipe.InitBuffer(inQueueA, bufferNum, size * sizeof(inType));
        pipe.InitBuffer(inQueueB, bufferNum, size * sizeof(inType));
        pipe.InitBuffer(outQueueC, bufferNum, size * sizeof(outType));
        pipe.InitBuffer(inputTempBufferA, size * sizeof(calcType));
        pipe.InitBuffer(inputTempBufferB, size * sizeof(calcType));
        pipe.InitBuffer(outputTempBuffer, size * sizeof(calcType));
    }
    __aicore__ inline void Process()
    {
        uint32_t loops = (tiling_.rowLen + tiling_.baseRow - 1) / tiling_.baseRow;
        for (uint32_t i = GetBlockIdx(); i < loops; i += GetBlockNum()) {
            uint32_t row = i * tiling_.baseRow;
            uint32_t rows = tiling_.rowLen - row < tiling_.baseRow ? tiling_.rowLen - row : tiling_.baseRow;
            uint64_t offset = (uint64_t)row * tiling_.colLen * 2;
            CopyHalf(inQueueA, offset, rows);
            CopyHalf(inQueueB, offset + tiling_.colLen, rows);
            Compute(rows * tiling_.colLen);
            LocalTensor<outType> out = outQueueC.template DeQue<outType>();
            DataCopyParams back;
            back.blockCount = rows;
            back.blockLen = tiling_.colLen * sizeof(outType) / ONE_BLK_SIZE;
            back.srcStride = 0;
            back.dstStride = 0;
            DataCopy(outGm[row * tiling_.colLen], out, back);
            outQueueC.FreeTensor(out);
        }
    }

private:
    template <typename Q> __aicore__ inline void CopyHalf(Q &queue, uint64_t offset, uint32_t rows)
    {
        LocalTensor<inType> local = queue.template AllocTensor<inType>();
        uint16_t blocks = tiling_.colLen * sizeof(inType) / 32;
        DataCopy(local, beginGm[offset], {(uint16_t)rows, blocks, blocks, 0});
        queue.template EnQue(local);
    }
    __aicore__ inline void Compute(uint32_t n)
    {
        LocalTensor<inType> a = inQueueA.template DeQue<inType>();
        LocalTensor<inType> b = inQueueB.template DeQue<inType>();
        LocalTensor<calcType> ta = inputTempBufferA.Get<calcType>(n), tb = inputTempBufferB.Get<calcType>(), tc = outputTempBuffer.Get<calcType>();
        Cast(ta, a, RoundMode::CAST_NONE, n);
        Cast<calcType, inType, true>(tb, b, RoundMode::CAST_NONE, n);
        inQueueA.template FreeTensor(a);
        inQueueB.template FreeTensor(b);
        Muls(tc, ta, static_cast<calcType>(-1.0), n);
        Exp(tc, tc, n);
        Adds(tc, tc, (calcType)1.0, n);
        Div(ta, ta, tc, n);
        Mul(tb, ta, tb, n);
        LocalTensor<outType> c = outQueueC.template AllocTensor<outType>();
        Cast(c, tb, RoundMode::CAST_RINT, n);
        outQueueC.template EnQue<outType>(c);
    }
    TPipe pipe;
    TQue<QuePosition::VECIN, bufferNum> inQueueA, inQueueB;
    TQue<QuePosition::VECOUT, bufferNum> outQueueC;
    TBuf<TPosition::VECCALC> inputTempBufferA, inputTempBufferB, outputTempBuffer;
    GlobalTensor<inType> beginGm;
    GlobalTensor<outType> outGm;
    SwiGluTilingData tiling_;
};

inline __aicore__ void InitTilingData(const __gm__ uint8_t *p_tilingdata, SwiGluTilingData *tilingdata)
{
#if defined(__CCE_KT_TEST__) || (__CCE_AICORE__ == 220)
    tilingdata->is32BAligned = (*(const __gm__ uint32_t *)(p_tilingdata + 0));
    tilingdata->rowLen = (*(const __gm__ uint32_t *)(p_tilingdata + 4));
    tilingdata->colLen = (*(const __gm__ uint32_t *)(p_tilingdata + 8));
    tilingdata->baseRow = (*(const __gm__ uint32_t *)(p_tilingdata + 12));
#else
    __ubuf__ uint8_t *tilingdata_in_ub = (__ubuf__ uint8_t *)get_imm(0);
    copy_gm_to_ubuf(((__ubuf__ uint8_t *)tilingdata_in_ub), p_tilingdata, 0, 1, 1, 0, 0);
    pipe_barrier(PIPE_ALL);
    tilingdata->rowLen = (*(__ubuf__ uint32_t *)(tilingdata_in_ub + 4));
#endif
}
#define GET_TILING_DATA(tiling_data, tiling_arg) \
    SwiGluTilingData tiling_data;                \
    InitTilingData(tiling_arg, &tiling_data);

extern "C" __global__ __aicore__ void swi_glu(GM_ADDR input_gm, GM_ADDR output_gm, GM_ADDR workspace, GM_ADDR tiling)
{
    GET_TILING_DATA(tempTilingGm, tiling);
    if (tempTilingGm.is32BAligned == 1) {
        SwiGluSingle<DTYPE_X, float, DTYPE_X, 2> op;
        op.Init(input_gm, output_gm, &tempTilingGm);
        op.Process();
    } else {
        SwiGluSingle<DTYPE_X, float, DTYPE_X, 1> op;
        op.Init(input_gm, output_gm, &tempTilingGm);
        op.Process();
    }
}
