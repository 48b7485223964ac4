// Each group of a row normalised: sums of blocks and repeats, results spread to blocks, products with strides of 0.
#include "kernel_operator.h"
using namespace AscendC;

class GroupScale {
public:
    __aicore__ inline GroupScale(TPipe *p) { pipe = p; }
    __aicore__ inline void Init(GM_ADDR x, GM_ADDR y, GM_ADDR mean, int64_t groups, float epsilon)
    {
        groups_ = groups;
        epsilon_ = epsilon;
        xGm.SetGlobalBuffer((__gm__ float *)x);
        yGm.SetGlobalBuffer((__gm__ float *)y);
        meanGm.SetGlobalBuffer((__gm__ float *)mean);
        pipe->InitBuffer(inQue, 1, AT_ONCE * GROUP * sizeof(float));
        pipe->InitBuffer(outQue, 1, AT_ONCE * GROUP * sizeof(float));
        pipe->InitBuffer(meanQue, 1, AT_ONCE * sizeof(float));
        pipe->InitBuffer(block, AT_ONCE * 8 * sizeof(float));
        pipe->InitBuffer(work, AT_ONCE * GROUP * sizeof(float));
        pipe->InitBuffer(part, AT_ONCE * 8 * sizeof(float));
    }
    __aicore__ inline void Process()
    {
        for (int64_t first = 0; first < groups_; first += AT_ONCE) {
            auto x = inQue.AllocTensor<float>();
            DataCopy(x, xGm[first * GROUP], AT_ONCE * GROUP);
            inQue.EnQue(x);
            Compute();
            auto y = outQue.DeQue<float>();
            auto mean = meanQue.DeQue<float>();
            DataCopy(yGm[first * GROUP], y, AT_ONCE * GROUP);
            DataCopy(meanGm[first], mean, AT_ONCE);
            outQue.FreeTensor(y);
            meanQue.FreeTensor(mean);
        }
    }

private:
    static constexpr int64_t AT_ONCE = 16, GROUP = 64;
    __aicore__ inline void Compute()
    {
        LocalTensor<float> x = inQue.DeQue<float>();
        LocalTensor<float> y = outQue.AllocTensor<float>(), mean = meanQue.AllocTensor<float>();
        LocalTensor<float> parts = part.Get<float>(), spread = block.Get<float>(), square = work.Get<float>();
        const uint8_t repeats = AT_ONCE;
        BlockReduceSum(parts, x, repeats, GROUP, 1, 1, 8);
        PipeBarrier<PIPE_V>();
        BlockReduceSum<float>(mean, parts, AT_ONCE / 8, 64, 1, 1, 8);
        PipeBarrier<PIPE_V>();
        Muls(mean, mean, 1.0f / GROUP, AT_ONCE);
        PipeBarrier<PIPE_V>();
        Brcb(spread, mean, AT_ONCE / 8, {1, 8});
        PipeBarrier<PIPE_V>();
        uint64_t mask[2] = {0xFFFFFFFFFFFFFFFF, 0};
        Sub(y, x, spread, mask, repeats, {1, 1, 0, 8, 8, 1});
        PipeBarrier<PIPE_V>();
        Mul(square, y, y, 64, repeats, {1, 1, 1, 8, 8, 8});
        PipeBarrier<PIPE_V>();
        WholeReduceSum(parts, square, 64, repeats, 1, 1, 8);
        PipeBarrier<PIPE_V>();
        Muls(parts, parts, 1.0f / GROUP, AT_ONCE);
        PipeBarrier<PIPE_V>();
        Adds(parts, parts, epsilon_, AT_ONCE);
        PipeBarrier<PIPE_V>();
        Sqrt(parts, parts, AT_ONCE);
        PipeBarrier<PIPE_V>();
        Brcb(spread, parts, AT_ONCE / 8, BrcbRepeatParams{1, 8});
        PipeBarrier<PIPE_V>();
        Div(y, y, spread, 64, repeats, BinaryRepeatParams(1, 1, 0, 8, 8, 1));
        outQue.EnQue(y);
        meanQue.EnQue(mean);
        inQue.FreeTensor(x);
    }
    TPipe *pipe;
    TQue<TPosition::VECIN, 1> inQue;
    TQue<TPosition::VECOUT, 1> outQue, meanQue;
    TBuf<> block, work, part;
    GlobalTensor<float> xGm, yGm, meanGm;
    int64_t groups_;
    float epsilon_;
};

extern "C" __global__ [aicore] void group_scale(GM_ADDR x, GM_ADDR y, GM_ADDR mean, int64_t groups, float epsilon)
{
    TPipe pipe;
    GroupScale op(&pipe);
    op.Init(x, y, mean, groups, epsilon);
    op.Process();
}
