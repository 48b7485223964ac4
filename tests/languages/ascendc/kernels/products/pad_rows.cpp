// Rows moved to wider rows, with a value on both sides: a queue that is in and out, a pool of buffers, pads of a copy.
#include "kernel_operator.h"
using namespace AscendC;
constexpr uint8_t DEPTH = 2;

struct PadRowsParam {
    uint32_t rows;
    uint32_t cols;
    uint32_t left;
    uint32_t right;
    float value;
};

class PadRows {
public:
    __aicore__ inline PadRows(TPipe &pipe, const PadRowsParam &param) : pipe_(pipe), p_(param) {}
    __aicore__ inline void Init(GM_ADDR x, GM_ADDR y, GM_ADDR sums)
    {
        xGm_.SetGlobalBuffer((__gm__ float *)x, p_.rows * p_.cols);
        wide_ = p_.left + p_.cols + p_.right;
        yGm_.SetGlobalBuffer((__gm__ float *)y, p_.rows * wide_);
        sumsGm_.SetGlobalBuffer((__gm__ float *)sums, p_.rows);
        pipe_.InitBufPool(pool_, 4096);
        pipe_.InitBufPool(second_, 4096, pool_);
        pool_.InitBuffer(rowQueue_, DEPTH, AlignUp(wide_ * sizeof(float), ONE_BLK_SIZE));
        pool_.InitBuffer(spare_, 64);
        second_.InitBuffer(sumQueue_, 1, AlignUp(p_.rows * 4, 32));
        second_.InitBuffer(work_, 1024);
    }
    __aicore__ inline void Process()
    {
        for (uint32_t row = 0; row < p_.rows; ++row) {
            auto local = rowQueue_.AllocTensor<float>();
            DataCopyExtParams in(1, p_.cols * sizeof(float), 0, 0, 0);
            DataCopyPadExtParams<float> pad;
            pad.isPad = true;
            pad.leftPadding = p_.left;
            pad.rightPadding = p_.right;
            pad.paddingValue = p_.value;
            DataCopyPad(local, xGm_[row * p_.cols], in, pad);
            rowQueue_.EnQue(local);
            local = rowQueue_.DeQue<float>();
            DataCopyExtParams out = {1, static_cast<uint32_t>(wide_ * sizeof(float)), 0, 0, 0};
            DataCopyPad(yGm_[row * wide_], local, out);
            rowQueue_.FreeTensor(local);
        }
        PipeBarrier<PIPE_ALL>();
        // the pools share their bytes: from here on they are the second's
        LocalTensor<float> sums = sumQueue_.AllocTensor<float>(), work = work_.Get<float>();
        for (uint32_t row = 0; row < p_.rows; ++row) {
            DataCopyPad(work, yGm_[row * wide_ + p_.left], {1, uint32_t(p_.cols * 4), 0, 0, 0}, {false, 0, 0, 0.0f});
            SetFlag<HardEvent::MTE2_V>(EVENT_ID1);
            WaitFlag<HardEvent::MTE2_V>(EVENT_ID1);
            ReduceSum(work, work, work[128], p_.cols);
            SetFlag<HardEvent::V_S>(EVENT_ID1);
            WaitFlag<HardEvent::V_S>(EVENT_ID1);
            sums.SetValue(row, work.GetValue(0));
            SetFlag<HardEvent::S_MTE2>(EVENT_ID1);
            WaitFlag<HardEvent::S_MTE2>(EVENT_ID1);
        }
        set_flag(PIPE_S, PIPE_MTE3, EVENT_ID0);
        wait_flag(PIPE_S, PIPE_MTE3, EVENT_ID0);
        sumQueue_.EnQue<float>(sums);
        sums = sumQueue_.DeQue<float>();
        DataCopyPad(sumsGm_, sums, {1, (uint32_t)(p_.rows * sizeof(float)), 0, 0, 0});
        sumQueue_.FreeTensor(sums);
    }

private:
    TPipe &pipe_;
    const PadRowsParam &p_;
    TBufPool<TPosition::VECCALC> pool_, second_;
    TQueBind<TPosition::VECIN, TPosition::VECOUT, DEPTH> rowQueue_;
    TQue<TPosition::VECOUT, 1> sumQueue_;
    TBuf<> spare_, work_;
    GlobalTensor<float> xGm_, yGm_, sumsGm_;
    uint32_t wide_;
};

extern "C" __global__ __aicore__ void pad_rows(GM_ADDR x, GM_ADDR y, GM_ADDR sums, PadRowsParam param)
{
    TPipe pipe;
    PadRows op(pipe, param);
    op.Init(x, y, sums);
    op.Process();
}
