// How many tokens each expert has, added up by all cores in global memory, and the highest expert of each tile.
#include "kernel_operator.h"
using namespace AscendC;

struct ExpertTokensTilingData {
    uint32_t totalTokens;
    uint32_t tokensPerCore;
    uint32_t expertNum;
};

class ExpertTokens {
public:
    __aicore__ inline ExpertTokens() {}
    __aicore__ inline void Init(GM_ADDR ids, GM_ADDR counts, GM_ADDR highest, GM_ADDR workspace, const ExpertTokensTilingData &t, TPipe &pipe)
    {
        t_ = t;
        idsGm_.SetGlobalBuffer((__gm__ int32_t *)ids + GetBlockIdx() * t.tokensPerCore, t.tokensPerCore);
        countsGm_.SetGlobalBuffer((__gm__ int32_t *)counts, t.expertNum);
        highestGm_.SetGlobalBuffer((__gm__ float *)highest, 8);
        tokens_ = min(t.tokensPerCore, t.totalTokens - (uint32_t)GetBlockIdx() * t.tokensPerCore);
        pipe.InitBuffer(inQue_, 1, AlignUp(t.tokensPerCore * 4, 32));
        pipe.InitBuffer(outQue_, 1, AlignUp(t.expertNum * 4, 32));
        pipe.InitBuffer(maxQue_, 1, 256);
        pipe.InitBuffer(tmpBuf_, 4096);
        if (GetBlockIdx() == 0) {
            InitOutput<int32_t>(countsGm_, t.expertNum, 0);
            InitGlobalMemory(highestGm_, 8, 0.0f);
        }
        SyncAll();
    }
    __aicore__ inline void Process()
    {
        LocalTensor<int32_t> ids = inQue_.AllocTensor<int32_t>();
        DataCopyExtParams in{(uint16_t)1, uint32_t(tokens_ * sizeof(int32_t)), 0u, 0u, 0u};
        DataCopyPad(ids, idsGm_, in, DataCopyPadExtParams<int32_t>(false, 0, 0, 0));
        inQue_.EnQue<int32_t>(ids);
        ids = inQue_.DeQue<int32_t>();
        LocalTensor<int32_t> counts = outQue_.AllocTensor<int32_t>();
        Duplicate<int32_t>(counts, 0, t_.expertNum);
        event_t vs = static_cast<event_t>(GetTPipePtr()->AllocEventID<HardEvent::V_S>());
        SetFlag<HardEvent::V_S>(vs);
        WaitFlag<HardEvent::V_S>(vs);
        GetTPipePtr()->ReleaseEventID<HardEvent::V_S>(vs);
        for (uint32_t i = 0; i < tokens_; ++i) {
            int32_t expert = ids.GetValue(i);
            if (expert < 0 || expert >= (int32_t)t_.expertNum) {
                continue;
            }
            counts.SetValue(expert, counts.GetValue(expert) + 1);
        }
        SetFlag<HardEvent::S_MTE3>(EVENT_ID2);
        WaitFlag<HardEvent::S_MTE3>(EVENT_ID2);
        outQue_.EnQue(counts);
        counts = outQue_.DeQue<int32_t>();
        SetAtomicAdd<int32_t>();
        DataCopyPad(countsGm_, counts, DataCopyParams{1, static_cast<uint16_t>(t_.expertNum * sizeof(int32_t)), 0, 0});
        SetAtomicNone();
        outQue_.FreeTensor(counts);
        LocalTensor<float> top = maxQue_.AllocTensor<float>();
        LocalTensor<float> wide = tmpBuf_.Get<float>();
        Cast(wide, ids, RoundMode::CAST_ROUND, tokens_);
        PipeBarrier<PIPE_V>();
        WholeReduceMax<float>(top, wide, tokens_ < 64 ? tokens_ : 64, 1, 1, 1, 8);
        maxQue_.EnQue(top);
        top = maxQue_.DeQue<float>();
        SetAtomicMax<float>();
        DataCopyPad(highestGm_, top, {1, 4, 0, 0, 0});
        SetAtomicNone();
        maxQue_.FreeTensor(top);
        inQue_.FreeTensor(ids);
        DataCacheCleanAndInvalid<int32_t, CacheLine::SINGLE_CACHE_LINE, DcciDst::CACHELINE_OUT>(countsGm_);
    }

private:
    ExpertTokensTilingData t_;
    uint32_t tokens_;
    GlobalTensor<int32_t> idsGm_, countsGm_;
    GlobalTensor<float> highestGm_;
    TQue<TPosition::VECIN, 1> inQue_;
    TQue<TPosition::VECOUT, 1> outQue_, maxQue_;
    TBuf<TPosition::VECCALC> tmpBuf_;
};

extern "C" __global__ __aicore__ void expert_tokens(GM_ADDR ids, GM_ADDR counts, GM_ADDR highest, GM_ADDR workspace, GM_ADDR tiling)
{
    SetSysWorkspace(workspace);
    GM_ADDR userWS = GetUserWorkspace(workspace);
    if (userWS == nullptr) {
        return;
    }
    REGISTER_TILING_DEFAULT(ExpertTokensTilingData);
    GET_TILING_DATA(tiling_data, tiling);
    TPipe pipe;
    ExpertTokens op;
    op.Init(ids, counts, highest, userWS, tiling_data, pipe);
    op.Process();
}
