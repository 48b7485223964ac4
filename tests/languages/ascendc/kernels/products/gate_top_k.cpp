// Gating of experts: softmax of a row, the groups of 32 sorted and merged, the first k values and their numbers.
#include "kernel_operator.h"
#include "lib/sort/sort.h"

namespace MoeGate {
using namespace AscendC;
constexpr int32_t SORT_ONE = 32;
constexpr int32_t MERGE_FOUR = 4;
constexpr float MIN_FP32 = -3.4e38f;

struct GateTopKTilingData {
    int64_t rows;
    int64_t expertCount;
    int64_t k;
    int64_t renorm = 0;
};

template <typename T, bool IS_RENORM = false>
class MoeGateTopK {
public:
    __aicore__ inline MoeGateTopK(){};
    __aicore__ inline void Init(GM_ADDR x, GM_ADDR y, GM_ADDR expertIdx, const GateTopKTilingData *__restrict tiling, TPipe *tPipe)
    {
        pipe_ = tPipe;
        tiling_ = tiling;
        expertCountAlign_ = Align(tiling->expertCount, SORT_ONE);
        rowsPerCore_ = (tiling->rows + GetBlockNum() - 1) / GetBlockNum();
        rowBegin_ = rowsPerCore_ * GetBlockIdx();
        xGm_.SetGlobalBuffer((__gm__ T *)x);
        yGm_.SetGlobalBuffer((__gm__ T *)y);
        expertIdxGm_.SetGlobalBuffer((__gm__ int32_t *)expertIdx);
        pipe_->InitBuffer(xInQueue_, 2, expertCountAlign_ * sizeof(float) * (sizeof(float) / sizeof(T)));
        pipe_->InitBuffer(yOutQueue_, 2, Align(tiling->k, 8) * sizeof(float));
        pipe_->InitBuffer(indicesOutQueue_, 2, Align(tiling->k, 8) * sizeof(int32_t));
        pipe_->InitBuffer(calcTmpBuffer_, expertCountAlign_ * sizeof(float) * 8);
    }
    __aicore__ inline void Process()
    {
        int64_t rowEnd = Std::min(rowBegin_ + rowsPerCore_, tiling_->rows);
        for (int64_t row = rowBegin_; row < rowEnd; row++) {
            CopyInX(row);
            ComputeX();
            SortGroups();
            SelectTopK();
            CopyOut(row);
        }
    }

private:
    static __aicore__ inline int64_t Align(int64_t n, int64_t to) { return to == 0 ? n : (n + to - 1) / to * to; }
    __aicore__ inline void CopyInX(int64_t row)
    {
        LocalTensor<T> xInLocal = xInQueue_.AllocTensor<T>();
        int64_t behind = sizeof(T) == 2 ? expertCountAlign_ : 0;
        DataCopyExtParams dataCopyParams{1, static_cast<uint32_t>(tiling_->expertCount * sizeof(T)), 0, 0, 0};
        DataCopyPadExtParams<T> dataCopyPadParams{false, 0, 0, static_cast<T>(0)};
        DataCopyPad(xInLocal[behind], xGm_[row * tiling_->expertCount], dataCopyParams, dataCopyPadParams);
        xInQueue_.EnQue(xInLocal);
    }
    __aicore__ inline void ComputeX()
    {
        LocalTensor<float> xInLocal = xInQueue_.DeQue<float>();
        LocalTensor<float> work = calcTmpBuffer_.GetWithOffset<float>(expertCountAlign_, 0);
        LocalTensor<float> shared = calcTmpBuffer_.GetWithOffset<float>(expertCountAlign_, expertCountAlign_ * sizeof(float));
        int64_t n = tiling_->expertCount;
        if constexpr (!IsSameType<T, float>::value) {
            Cast(xInLocal, xInLocal.ReinterpretCast<T>()[expertCountAlign_], RoundMode::CAST_NONE, n);
            PipeBarrier<PIPE_V>();
        }
        ReduceMax(work, xInLocal, shared, n);
        event_t eventIdVToS = static_cast<event_t>(GetTPipePtr()->FetchEventID(HardEvent::V_S));
        SetFlag<HardEvent::V_S>(eventIdVToS);
        WaitFlag<HardEvent::V_S>(eventIdVToS);
        float maxValue = work.GetValue(0);
        event_t eventIdSToV = static_cast<event_t>(GetTPipePtr()->FetchEventID(HardEvent::S_V));
        SetFlag<HardEvent::S_V>(eventIdSToV);
        WaitFlag<HardEvent::S_V>(eventIdSToV);
        LocalTensor<float> scores = calcTmpBuffer_.GetWithOffset<float>(expertCountAlign_, 2 * expertCountAlign_ * sizeof(float));
        Duplicate(scores, MIN_FP32, expertCountAlign_);
        PipeBarrier<PIPE_V>();
        Adds(scores, xInLocal, -maxValue, n);
        PipeBarrier<PIPE_V>();
        Exp(scores, scores, n);
        PipeBarrier<PIPE_V>();
        ReduceSum(work, scores, shared, n);
        SetFlag<HardEvent::V_S>(eventIdVToS);
        WaitFlag<HardEvent::V_S>(eventIdVToS);
        float sumValue = work.GetValue(0);
        SetFlag<HardEvent::S_V>(eventIdSToV);
        WaitFlag<HardEvent::S_V>(eventIdSToV);
        Muls(scores, scores, 1.0f / sumValue, n);
        xInQueue_.FreeTensor(xInLocal);
    }
    __aicore__ inline void SortGroups()
    {
        LocalTensor<float> scores = calcTmpBuffer_.GetWithOffset<float>(expertCountAlign_, 2 * expertCountAlign_ * sizeof(float));
        LocalTensor<int32_t> numbers = calcTmpBuffer_.GetWithOffset<int32_t>(expertCountAlign_, 3 * expertCountAlign_ * sizeof(float));
        sorted_ = calcTmpBuffer_.GetWithOffset<float>(2 * expertCountAlign_, 4 * expertCountAlign_ * sizeof(float));
        LocalTensor<float> other = calcTmpBuffer_.GetWithOffset<float>(2 * expertCountAlign_, 6 * expertCountAlign_ * sizeof(float));
        ArithProgression<int32_t>(numbers, 0, 1, expertCountAlign_);
        PipeBarrier<PIPE_V>();
        Sort32(sorted_, scores, numbers.ReinterpretCast<uint32_t>(), expertCountAlign_ / SORT_ONE);
        PipeBarrier<PIPE_V>();
        int64_t groups = expertCountAlign_ / SORT_ONE, each = SORT_ONE;
        while (groups > 1) {
            int64_t left = groups, at = 0;
            while (left > 0) {
                int64_t count = left < MERGE_FOUR ? left : MERGE_FOUR;
                MrgSort4Info params;
                for (int64_t list = 0; list < MERGE_FOUR; ++list) {
                    params.elementLengths[list] = Std::min(each, Std::max(expertCountAlign_ - at / 2 - list * each, int64_t(0)));
                }
                params.ifExhaustedSuspension = false;
                params.validBit = (1 << count) - 1;
                params.repeatTimes = 1;
                MrgSortSrcList<float> srcList;
                srcList.src1 = sorted_[at];
                srcList.src2 = sorted_[at + each * 2 * (count > 1)];
                srcList.src3 = sorted_[at + each * 4 * (count > 2)];
                srcList.src4 = sorted_[at + each * 6 * (count > 3)];
                if (count == 1) {
                    DataCopy(other[at], sorted_[at], expertCountAlign_ * 2 - at);
                } else {
                    MrgSort<float>(other[at], srcList, params);
                }
                at += each * 2 * count;
                left -= count;
            }
            PipeBarrier<PIPE_V>();
            LocalTensor<float> swapped = sorted_;
            sorted_ = other;
            other = swapped;
            groups = (groups + MERGE_FOUR - 1) / MERGE_FOUR;
            each *= MERGE_FOUR;
        }
    }
    __aicore__ inline void SelectTopK()
    {
        LocalTensor<float> y = yOutQueue_.AllocTensor<float>();
        LocalTensor<int32_t> indices = indicesOutQueue_.AllocTensor<int32_t>();
        uint64_t rsvdCnt = 0;
        GatherMaskParams gatherMaskParams;
        gatherMaskParams.repeatTimes = 1;
        gatherMaskParams.src0BlockStride = 1;
        gatherMaskParams.src0RepeatStride = 8;
        gatherMaskParams.src1RepeatStride = 0;
        uint8_t valuePattern = 1, indexPattern = 2;
        uint32_t mask = tiling_->k * 2;
        GatherMask(y, sorted_, valuePattern, true, mask, gatherMaskParams, rsvdCnt);
        GatherMask(indices, sorted_.ReinterpretCast<int32_t>(), indexPattern, true, mask, {1, 1, 8, 8}, rsvdCnt);
        SetMaskNorm();
        ResetMask();
        PipeBarrier<PIPE_V>();
        if (tiling_->renorm == 1) {
            LocalTensor<float> work = calcTmpBuffer_.GetWithOffset<float>(8, 0);
            ReduceSum(work, y, work[64], rsvdCnt);
            SetFlag<HardEvent::V_S>(EVENT_ID0);
            WaitFlag<HardEvent::V_S>(EVENT_ID0);
            float total = work(0) + 1e-20f;
            Duplicate(work[8], total, 8);
            PipeBarrier<PIPE_V>();
            Div(y, y, work[8], 8, 1, {1, 1, 0, 8, 8, 0});
        }
        yOutQueue_.EnQue(y);
        indicesOutQueue_.EnQue(indices);
    }
    __aicore__ inline void CopyOut(int64_t row)
    {
        LocalTensor<float> y = yOutQueue_.DeQue<float>();
        LocalTensor<int32_t> indices = indicesOutQueue_.DeQue<int32_t>();
        if constexpr (!std::is_same_v<T, float>) {
            Cast(y.ReinterpretCast<T>(), y, RoundMode::CAST_RINT, tiling_->k);
            TEventID id = pipe_->AllocEventID<HardEvent::V_MTE3>();
            SetFlag<HardEvent::V_MTE3>(id);
            WaitFlag<HardEvent::V_MTE3>(id);
            pipe_->ReleaseEventID<HardEvent::V_MTE3>(id);
        }
        DataCopyPad(yGm_[row * tiling_->k], y.ReinterpretCast<T>(), DataCopyExtParams(1, tiling_->k * sizeof(T), 0, 0, 0));
        DataCopyPad(expertIdxGm_[row * tiling_->k], indices, DataCopyExtParams(1, tiling_->k * sizeof(int32_t), 0, 0, 0));
        yOutQueue_.FreeTensor(y);
        indicesOutQueue_.FreeTensor(indices);
    }
    TPipe *pipe_;
    const GateTopKTilingData *__restrict tiling_;
    TQue<QuePosition::VECIN, 1> xInQueue_;
    TQue<QuePosition::VECOUT, 1> yOutQueue_, indicesOutQueue_;
    TBuf<QuePosition::VECCALC> calcTmpBuffer_;
    GlobalTensor<T> xGm_, yGm_;
    GlobalTensor<int32_t> expertIdxGm_;
    LocalTensor<float> sorted_;
    int64_t expertCountAlign_ = 0, rowsPerCore_ = 0, rowBegin_ = 0;
};
} // namespace MoeGate

extern "C" __global__ __aicore__ void gate_top_k(GM_ADDR x, GM_ADDR y, GM_ADDR expertIdx, GM_ADDR workspace, GM_ADDR tiling)
{
    KERNEL_TASK_TYPE_DEFAULT(KERNEL_TYPE_AIV_ONLY);
    if (g_coreType == AIC) {
        return;
    }
    GET_TILING_DATA_WITH_STRUCT(MoeGate::GateTopKTilingData, tilingDataIn, tiling);
    const MoeGate::GateTopKTilingData *__restrict t = &tilingDataIn;
    AscendC::TPipe tPipe;
    MoeGate::MoeGateTopK<DTYPE_X> op;
    op.Init(x, y, expertIdx, t, &tPipe);
    op.Process();
    tPipe.Destroy();
}
