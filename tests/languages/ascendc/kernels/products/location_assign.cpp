// Numbers copied into the rows of a table as the scalar unit reads where from and where to: 64-bit loops, no tiling.
#include "kernel_operator.h"
#define BYTES_OF_BLOCK 32
using namespace AscendC;

template <typename ID>
class LocationAssign {
public:
    __aicore__ inline void Init(GM_ADDR pool, GM_ADDR table, GM_ADDR begin, GM_ADDR end, GM_ADDR rows, int32_t batch, int32_t width)
    {
        batch_ = batch, width_ = width;
        poolGm_.SetGlobalBuffer(reinterpret_cast<__gm__ int32_t *>(pool));
        tableGm_.SetGlobalBuffer(reinterpret_cast<__gm__ int32_t *>(table));
        beginGm_.SetGlobalBuffer(reinterpret_cast<__gm__ ID *>(begin), batch);
        endGm_.SetGlobalBuffer(reinterpret_cast<__gm__ ID *>(end), batch);
        rowsGm_.SetGlobalBuffer(reinterpret_cast<__gm__ ID *>(rows), batch);
        uint32_t bytes = (batch * sizeof(ID) + BYTES_OF_BLOCK - 1) / BYTES_OF_BLOCK * BYTES_OF_BLOCK;
        pipe_.InitBuffer(beginBuf_, bytes);
        pipe_.InitBuffer(endBuf_, bytes);
        pipe_.InitBuffer(rowQue_, 1, AlignUp(width * sizeof(int32_t), BYTES_OF_BLOCK));
    }
    __aicore__ inline void Process()
    {
        LocalTensor<ID> begin = beginBuf_.template Get<ID>(), end = endBuf_.template Get<ID>();
        DataCopyPad(begin, beginGm_, {1, static_cast<uint32_t>(batch_ * sizeof(ID)), 0, 0, 0}, {true, 0, 0, 0});
        DataCopyPad(end, endGm_, {1, static_cast<uint32_t>(batch_ * sizeof(ID)), 0, 0, 0}, {true, 0, 0, 0});
        auto loaded = GetTPipePtr()->FetchEventID(HardEvent::MTE2_S);
        SetFlag<HardEvent::MTE2_S>(loaded);
        WaitFlag<HardEvent::MTE2_S>(loaded);
        uint64_t from = 0;
        for (int32_t i = GetBlockIdx(); i < batch_; i += GetBlockNum()) {
            ID first = begin.GetValue(i);
            uint32_t count = static_cast<uint32_t>(end.GetValue(i) - first);
            ID row = rowsGm_.GetValue(i);
            if (count > 0) {
                Move(from, static_cast<uint64_t>(row) * width_ + first, count);
            }
            from += count;
        }
    }

private:
    __aicore__ inline void Move(uint64_t from, uint64_t to, uint32_t count)
    {
        rowQue_.template AllocTensor<int32_t>(row_);
        DataCopyExtParams params{1, count * static_cast<uint32_t>(sizeof(int32_t)), 0, 0, 0};
        DataCopyPadExtParams<int32_t> pad{false, 0, 0, 0};
        DataCopyPad(row_, poolGm_[from], params, pad);
        rowQue_.EnQue(row_);
        rowQue_.template DeQue<int32_t>(row_);
        DataCopyPad(tableGm_[to], row_, params);
        rowQue_.FreeTensor(row_);
    }
    int32_t batch_, width_;
    GlobalTensor<int32_t> poolGm_, tableGm_;
    GlobalTensor<ID> beginGm_, endGm_, rowsGm_;
    TPipe pipe_;
    TBuf<TPosition::VECCALC> beginBuf_, endBuf_;
    TQueBind<QuePosition::VECIN, QuePosition::VECOUT, 0> rowQue_;
    LocalTensor<int32_t> row_;
};

extern "C" __global__ __aicore__ void location_assign(GM_ADDR pool, GM_ADDR table, GM_ADDR begin, GM_ADDR end, GM_ADDR rows,
                                                      int32_t batch, int32_t width)
{
    LocationAssign<int64_t> op;
    op.Init(pool, table, begin, end, rows, batch, width);
    op.Process();
}
