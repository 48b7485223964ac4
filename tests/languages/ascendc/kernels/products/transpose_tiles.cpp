// A matrix turned over by tiles of 16 x 16: lists of rows for the transposition, halves and floats.
#include "kernel_operator.h"
using namespace AscendC;
constexpr int32_t SIDE = 16;

template <typename T>
class TransposeTiles {
public:
    __aicore__ inline void Init(GM_ADDR x, GM_ADDR y, uint32_t rows, uint32_t cols)
    {
        rows_ = rows;
        cols_ = cols;
        xGm.SetGlobalBuffer((__gm__ T *)x, rows * cols);
        yGm.SetGlobalBuffer((__gm__ T *)y, rows * cols);
        pipe.InitBuffer(inQueue, 2, SIDE * cols * sizeof(T));
        pipe.InitBuffer(outQueue, 2, SIDE * cols * sizeof(T));
    }
    __aicore__ inline void Process()
    {
        for (uint32_t row = 0; row < rows_; row += SIDE) {
            LocalTensor<T> in = inQueue.AllocTensor<T>();
            DataCopy(in, xGm[row * cols_], SIDE * cols_);
            inQueue.EnQue(in);
            Compute();
            LocalTensor<T> out = outQueue.DeQue<T>();
            DataCopyExtParams params;
            params.blockCount = cols_;
            params.blockLen = SIDE * sizeof(T);
            params.srcStride = 0;
            params.dstStride = (rows_ - SIDE) * sizeof(T);
            DataCopyPad(yGm[row], out, params);
            outQueue.FreeTensor(out);
        }
    }

private:
    __aicore__ inline void Compute()
    {
        LocalTensor<T> in = inQueue.DeQue<T>();
        LocalTensor<T> out = outQueue.AllocTensor<T>();
        constexpr uint32_t PER_BLOCK = ONE_BLK_SIZE / sizeof(T);
        TransDataTo5HDParams params;
        params.dstHighHalf = false;
        params.srcHighHalf = false;
        params.repeatTimes = cols_ / PER_BLOCK;
        params.dstRepStride = params.repeatTimes == 1 ? 0 : SIDE * PER_BLOCK * sizeof(T) / 32;
        params.srcRepStride = params.repeatTimes == 1 ? 0 : 1;
        LocalTensor<T> dstList[16];
        LocalTensor<T> srcList[16];
        for (int32_t i = 0; i < SIDE; ++i) {
            srcList[i] = in[i * cols_];
            if constexpr (sizeof(T) == 2) {
                dstList[i] = out[i * SIDE];
            } else {
                dstList[i] = out[i / 2 * SIDE + i % 2 * PER_BLOCK];
            }
        }
        TransDataTo5HD<T>(dstList, srcList, params);
        outQueue.EnQue(out);
        inQueue.FreeTensor(in);
    }
    TPipe pipe;
    TQue<QuePosition::VECIN, 1> inQueue;
    TQue<QuePosition::VECOUT, 1> outQueue;
    GlobalTensor<T> xGm, yGm;
    uint32_t rows_, cols_;
};

extern "C" __global__ __aicore__ void transpose_tiles(GM_ADDR x, GM_ADDR y, uint32_t rows, uint32_t cols)
{
    TransposeTiles<DTYPE_X> op;
    op.Init(x, y, rows, cols);
    op.Process();
}
