// Loss and prediction of each row of logits: the maximum and its place, a sum of exponentials, the target's logit.
#include <cstdint>
#include "kernel_operator.h"
using namespace AscendC;
constexpr uint32_t FP32_ONE_BLOCK = ONE_BLK_SIZE / sizeof(float);

class CrossEntropy {
public:
    __aicore__ inline CrossEntropy() {}
    __aicore__ inline void Init(GM_ADDR logits, GM_ADDR target, GM_ADDR loss, GM_ADDR best, uint32_t rows, uint32_t classes)
    {
        rows_ = rows, classes_ = classes;
        aligned_ = (classes + FP32_ONE_BLOCK - 1) / FP32_ONE_BLOCK * FP32_ONE_BLOCK;
        logitsGm_.SetGlobalBuffer((__gm__ float *)logits);
        targetGm_.SetGlobalBuffer((__gm__ int32_t *)target);
        lossGm_.SetGlobalBuffer((__gm__ float *)loss);
        bestGm_.SetGlobalBuffer((__gm__ int32_t *)best);
        pipe_.InitBuffer(rowQueue_, 2, aligned_ * sizeof(float));
        pipe_.InitBuffer(workBuf_, aligned_ * sizeof(float) + 512);
        pipe_.InitBuffer(resultBuf_, 64);
        pipe_.InitBuffer(lossBuf_, AlignUp(rows * 4, 32));
        pipe_.InitBuffer(bestBuf_, AlignUp(rows * 4, 32));
    }
    __aicore__ inline void Process()
    {
        LocalTensor<float> loss = lossBuf_.Get<float>();
        LocalTensor<int32_t> best = bestBuf_.Get<int32_t>();
        for (uint32_t row = 0; row < rows_; ++row) {
            LocalTensor<float> x = rowQueue_.AllocTensor<float>();
            uint8_t pad = aligned_ - classes_;
            DataCopyPad(x, logitsGm_[row * classes_], {1, (uint16_t)(classes_ * sizeof(float)), 0, 0},
                        {true, 0, pad, (uint64_t)0xFF7FFFFF});
            rowQueue_.EnQue(x);
            x = rowQueue_.DeQue<float>();
            LocalTensor<float> work = workBuf_.Get<float>(), result = resultBuf_.Get<float>();
            ReduceMax<float>(result, x, work, aligned_, true);
            Wait(HardEvent::V_S);
            float top = result.GetValue(0);
            float place = result.GetValue(1);
            best.SetValue(row, *reinterpret_cast<int32_t *>(&place));
            Wait(HardEvent::S_V);
            float own = x.GetValue(targetGm_.GetValue(row));
            Adds(x, x, -top, classes_);
            PipeBarrier<PIPE_V>();
            Exp(x, x, classes_);
            PipeBarrier<PIPE_V>();
            ReduceSum<float>(result, x, work, classes_);
            PipeBarrier<PIPE_V>();
            Ln(result, result, 1);
            Wait(HardEvent::V_S);
            loss(row) = result(0) + top - own;
            rowQueue_.FreeTensor(x);
        }
        event_t id = static_cast<event_t>(pipe_.FetchEventID(HardEvent::S_MTE3));
        SetFlag<HardEvent::S_MTE3>(id);
        WaitFlag<HardEvent::S_MTE3>(id);
        DataCopyPad(lossGm_, loss, {1, (uint32_t)(rows_ * sizeof(float)), 0, 0, 0});
        DataCopyPad(bestGm_, best, {1, (uint32_t)(rows_ * sizeof(int32_t)), 0, 0, 0});
    }

private:
    __aicore__ inline void Wait(HardEvent event)
    {
        event_t id = static_cast<event_t>(GetTPipePtr()->FetchEventID(event));
        if (event == HardEvent::V_S) {
            SetFlag<HardEvent::V_S>(id);
            WaitFlag<HardEvent::V_S>(id);
        } else if (event == HardEvent::S_V) {
            SetFlag<HardEvent::S_V>(id);
            WaitFlag<HardEvent::S_V>(id);
        }
    }
    TPipe pipe_;
    TQue<TPosition::VECIN, 2> rowQueue_;
    TBuf<> workBuf_, resultBuf_, lossBuf_, bestBuf_;
    GlobalTensor<float> logitsGm_, lossGm_;
    GlobalTensor<int32_t> targetGm_, bestGm_;
    uint32_t rows_ = 0, classes_ = 0, aligned_ = 0;
};

extern "C" __global__ __aicore__ void cross_entropy(GM_ADDR logits, GM_ADDR target, GM_ADDR loss, GM_ADDR best, uint32_t rows, uint32_t classes)
{
    CrossEntropy op;
    op.Init(logits, target, loss, best, rows, classes);
    op.Process();
}
