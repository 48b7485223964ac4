// The error function by a polynomial of its clamped argument: constants in a list, Axpy, a shift of bits, division.
#include "kernel_operator.h"
using namespace AscendC;
#define BUFFER_NUM 2

class ErfPoly {
public:
    __aicore__ inline void Init(GM_ADDR x, GM_ADDR y, uint32_t blockLength, uint32_t tileNum)
    {
        ASSERT(GetBlockNum() != 0 && "block dim can not be zero!");
        this->blockLength = blockLength;
        this->tileNum = tileNum;
        this->tileLength = this->blockLength / tileNum / BUFFER_NUM;
        xGm.SetGlobalBuffer((__gm__ float *)x + this->blockLength * GetBlockIdx(), this->blockLength);
        yGm.SetGlobalBuffer((__gm__ float *)y + this->blockLength * GetBlockIdx(), this->blockLength);
        pipe.InitBuffer(inQueueX, BUFFER_NUM, this->tileLength * sizeof(float));
        pipe.InitBuffer(outQueueY, BUFFER_NUM, this->tileLength * sizeof(float));
        pipe.InitBuffer(tmpBuffer1, this->tileLength * sizeof(float));
        pipe.InitBuffer(tmpBuffer2, this->tileLength * sizeof(float));
        pipe.InitBuffer(tmpBuffer3, this->tileLength * sizeof(float));
    }
    __aicore__ inline void Process()
    {
        int32_t loopCount = this->tileNum * BUFFER_NUM;
        for (int32_t i = 0; i < loopCount; i++) {
            CopyIn(i);
            Compute(i);
            CopyOut(i);
        }
    }

private:
    __aicore__ inline void CopyIn(int32_t progress)
    {
        LocalTensor<float> xLocal = inQueueX.AllocTensor<float>();
        DataCopy(xLocal, xGm[progress * this->tileLength], this->tileLength);
        inQueueX.EnQue(xLocal);
    }
    __aicore__ inline void Compute(int32_t progress)
    {
        static constexpr float P[] = {0.00022905065861350646f, 0.0034082910107109506f, 0.050955695062380861f, 0.18520832239976145f, 1.128379143519084f};
        constexpr float Q[] = {-1.1791602954361697e-7f, 2.3547966471313185e-5f, 1.0179625278914885e-3f, 1.4070470171167667e-2f, 0.11098505178285362f, 0.49746925110067538f, 1.0f};
        LocalTensor<float> xLocal = inQueueX.DeQue<float>();
        LocalTensor<float> yLocal = outQueueY.AllocTensor<float>();
        LocalTensor<float> square = tmpBuffer1.Get<float>(), above = tmpBuffer2.Get<float>(), below = tmpBuffer3.Get<float>();
        Maxs(xLocal, xLocal, -3.92f, this->tileLength);
        Mins(xLocal, xLocal, 3.92f, this->tileLength);
        Mul(square, xLocal, xLocal, this->tileLength);
        Horner(above, square, P, 5);
        Horner(below, square, Q, 7);
        Mul(above, above, xLocal, this->tileLength);
        Div(yLocal, above, below, this->tileLength);
        // signs, as integers of 32 bits, next to what they are signs of
        LocalTensor<uint32_t> sign = below.ReinterpretCast<uint32_t>();
        ShiftRight(sign, xLocal.ReinterpretCast<uint32_t>(), static_cast<uint32_t>(31), (int32_t)this->tileLength);
        ShiftLeft<uint32_t>(sign, sign, 1u, this->tileLength);
        Cast(square, below.ReinterpretCast<int32_t>(), RoundMode::CAST_NONE, this->tileLength);
        Duplicate<float>(above, 1.0f, this->tileLength);
        Axpy(above, square, -1.0f, this->tileLength);
        Abs(yLocal, yLocal, this->tileLength);
        yLocal = yLocal * above;
        outQueueY.EnQue<float>(yLocal);
        inQueueX.FreeTensor(xLocal);
    }
    __aicore__ inline void Horner(LocalTensor<float> &dst, LocalTensor<float> &x, const float *factors, uint32_t count)
    {
        Duplicate(dst, factors[0], this->tileLength);
        for (uint32_t i = 1; i < count; ++i) {
            Mul(dst, dst, x, this->tileLength);
            Adds(dst, dst, factors[i], this->tileLength);
        }
    }
    __aicore__ inline void CopyOut(int32_t progress)
    {
        LocalTensor<float> yLocal = outQueueY.DeQue<float>();
        DataCopy(yGm[progress * this->tileLength], yLocal, this->tileLength);
        outQueueY.FreeTensor(yLocal);
    }

private:
    TPipe pipe;
    TQue<QuePosition::VECIN, BUFFER_NUM> inQueueX;
    TQue<QuePosition::VECOUT, BUFFER_NUM> outQueueY;
    TBuf<QuePosition::VECCALC> tmpBuffer1, tmpBuffer2, tmpBuffer3;
    GlobalTensor<float> xGm;
    GlobalTensor<float> yGm;
    uint32_t blockLength;
    uint32_t tileNum;
    uint32_t tileLength;
};

extern "C" __global__ __aicore__ void erf_poly(GM_ADDR x, GM_ADDR y, GM_ADDR workspace, GM_ADDR tiling)
{
    GET_TILING_DATA(tiling_data, tiling);
    ErfPoly op;
    op.Init(x, y, tiling_data.blockLength, tiling_data.tileNum);
    op.Process();
}

#ifndef __CCE_KT_TEST__
// call of kernel function
void erf_poly_do(uint32_t blockDim, void *l2ctrl, void *stream, uint8_t *x, uint8_t *y, uint8_t *workspace, uint8_t *tiling)
{
    erf_poly<<<blockDim, l2ctrl, stream>>>(x, y, workspace, tiling);
}
#endif
