// Rows of 16-bit numbers sorted up or down, and where the numbers came from.
#include "kernel_operator.h"
using namespace AscendC;
constexpr uint32_t GROUP = 32;

template <typename T, bool DESCEND>
class SortRows {
public:
    __aicore__ inline void Init(GM_ADDR x, GM_ADDR y, GM_ADDR index, uint32_t rows, uint32_t length)
    {
        this->rows = rows, this->length = length, aligned = AlignUp(length, GROUP);
        xGm.SetGlobalBuffer((__gm__ T *)x), yGm.SetGlobalBuffer((__gm__ T *)y), indexGm.SetGlobalBuffer((__gm__ int32_t *)index);
        pipe.InitBuffer(inQueue, 1, aligned * sizeof(T));
        pipe.InitBuffer(indexQueue, 1, aligned * sizeof(uint32_t));
        pipe.InitBuffer(outQueue, 1, aligned * sizeof(T));
        pipe.InitBuffer(outIndexQueue, 1, aligned * sizeof(uint32_t));
        pipe.InitBuffer(sortBuf, aligned * 8);
        pipe.InitBuffer(concatBuf, aligned * 8);
        pipe.InitBuffer(tmpBuf, aligned * 8);
    }
    __aicore__ inline void Process()
    {
        for (uint32_t row = 0; row < rows; ++row) {
            LocalTensor<T> in = inQueue.AllocTensor<T>();
            Duplicate(in, T(-INFINITY), aligned);
            TQueSync<PIPE_V, PIPE_MTE2> order;
            order.SetFlag(0);
            order.WaitFlag(0);
            DataCopyPad(in, xGm[row * length], {1, uint16_t(length * sizeof(T)), 0, 0}, {false, 0, 0, 0});
            inQueue.EnQue(in);
            in = inQueue.DeQue<T>();
            if (!DESCEND) {
                Muls(in, in, (T)-1.0, length);
            }
            LocalTensor<int32_t> numbers = indexQueue.AllocTensor<int32_t>();
            CreateVecIndex(numbers, (int32_t)0, aligned);
            LocalTensor<T> concat = concatBuf.Get<T>(), sorted = sortBuf.Get<T>(), tmp = tmpBuf.Get<T>();
            LocalTensor<T> out = outQueue.AllocTensor<T>();
            LocalTensor<uint32_t> outIndex = outIndexQueue.AllocTensor<uint32_t>();
            Concat(concat, in, tmp, aligned / 16);
            Sort<T, true>(sorted, concat, numbers.ReinterpretCast<uint32_t>(), tmp, aligned / GROUP);
            Extract(out, outIndex, sorted, aligned / GROUP);
            if (!DESCEND) {
                Muls(out, out, (T)-1.0, length);
            }
            inQueue.FreeTensor(in);
            indexQueue.FreeTensor(numbers);
            outQueue.EnQue(out);
            outIndexQueue.EnQue(outIndex);
            out = outQueue.DeQue<T>();
            outIndex = outIndexQueue.DeQue<uint32_t>();
            DataCopyPad(yGm[row * length], out, {1, (uint32_t)(length * sizeof(T)), 0, 0, 0});
            DataCopyPad(indexGm[row * length], outIndex.ReinterpretCast<int32_t>(), {1, (uint32_t)(length * sizeof(int32_t)), 0, 0, 0});
            outQueue.FreeTensor(out);
            outIndexQueue.FreeTensor(outIndex);
        }
    }

private:
    TPipe pipe;
    uint32_t rows, length, aligned;
    GlobalTensor<T> xGm, yGm;
    GlobalTensor<int32_t> indexGm;
    TQue<QuePosition::VECIN, 1> inQueue, indexQueue;
    TQue<QuePosition::VECOUT, 1> outQueue, outIndexQueue;
    TBuf<QuePosition::VECCALC> sortBuf, concatBuf, tmpBuf;
};

template <typename T, bool DESCEND>
__aicore__ inline void run_sort(GM_ADDR x, GM_ADDR y, GM_ADDR index, uint32_t rows, uint32_t length)
{
    SortRows<T, DESCEND> op;
    op.Init(x, y, index, rows, length);
    op.Process();
}

extern "C" __global__ __aicore__ void sort_rows(GM_ADDR x, GM_ADDR y, GM_ADDR index, uint32_t rows, uint32_t length, bool descend)
{
    if (descend) {
        run_sort<half, true>(x, y, index, rows, length);
    } else {
        run_sort<half, false>(x, y, index, rows, length);
    }
}
