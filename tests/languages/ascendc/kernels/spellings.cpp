// Spellings of calls that kernels use: template arguments, types of counts and scalars, lists in braces, masks. They
// have to compile and to be recorded; values are compared elsewhere.
#include "kernel_operator.h"
#include "kernel_tiling/kernel_tiling.h"
using namespace AscendC;
namespace own { template <typename T1, typename T2> __aicore__ inline T1 CeilDiv(T1 a, T2 b) { return b == 0 ? a : (a + b - 1) / b; } }
using own::CeilDiv;
template <typename T> __aicore__ inline T AlignUp(T a, T b) { return (a + b - 1) / b * b; }
__aicore__ inline uint32_t DivCeil(uint32_t a, uint32_t b) { return (a + b - 1) / b; }
__aicore__ inline int64_t Ceil(int64_t a, int64_t b) { return CeilDiv(a, b); }
template <typename T> __aicore__ inline T Max(T a, T b) { return a > b ? a : b; }
template <HardEvent event> __aicore__ inline void SyncOf(HardEvent evt) {
  event_t eventId = static_cast<event_t>(GetTPipePtr()->FetchEventID(evt)); SetFlag<event>(eventId); WaitFlag<event>(eventId);
}
struct Base { TPipe *pipe; };
class K : public Base {
 public:
  TBuf<> bufs[3]; TQue<QuePosition::VECIN, 1> ques[2]; LocalTensor<float> arr[3];
  static constexpr TQueConfig CONF = {.nd2nz = false, .nz2nd = false, .scmBlockGroup = false, .bufferLen = 0, .bufferNumber = 2};
  TQueBind<TPosition::VECIN, TPosition::VECOUT, 1> bind;
};
extern "C" __global__ __aicore__ void k(GM_ADDR x, GM_ADDR y, GM_ADDR z, GM_ADDR tiling) {
  TPipe pipe; K kk; kk.pipe = &pipe;
  GlobalTensor<float> g; g.SetGlobalBuffer((__gm__ float *)x, 4096);
  GlobalTensor<half> gh; gh.SetGlobalBuffer((__gm__ half *)y);
  for (auto &b : kk.bufs) pipe.InitBuffer(b, 8192);
  pipe.InitBuffer(kk.ques[0], 2, 1024); kk.pipe->InitBuffer(kk.ques[1], 1, 32 * sizeof(float));
  pipe.InitBuffer(kk.bind, 2, 256);
  LocalTensor<float> a = kk.bufs[0].Get<float>(), b = kk.bufs[1].Get<float>(), c = kk.bufs[2].Get<float>(), w = c[1024];
  LocalTensor<half> h = a.ReinterpretCast<half>(), h2 = b.ReinterpretCast<half>();
  LocalTensor<int32_t> i = a.ReinterpretCast<int32_t>(); LocalTensor<uint8_t> m = c.ReinterpretCast<uint8_t>();
  uint64_t mask[2] = {~0ull, 0}; const uint64_t cmask[] = {~0ull, 0}; uint8_t rep = 2; int32_t n = 64; uint32_t un = 64; int64_t ln = 64; size_t sn = 64;
  Duplicate(a, 1.5f, n); Duplicate<float>(a, 0, un); Duplicate(h, half(0), ln); Duplicate(h, (half)0.5, 64, 2, 1, 8); Duplicate(i, 0, sn);
  Duplicate<float, false>(a, 0.0f, MASK_PLACEHOLDER, 1, 1, 8); Duplicate(a, 0.0f, mask, 1, 1, 8);
  Add(a, a, b, n); Add(a, b, c, 64, 1, {1, 1, 1, 8, 8, 8}); Add<float, false>(a, b, c, MASK_PLACEHOLDER, 1, {1, 1, 1, 8, 8, 8}); Add(a, b, c, cmask, 1, {1, 1, 1, 8, 8, 8});
  Add(a, b, c, MASK_PLACEHOLDER_LIST, 0, {1, 1, 1, 8, 8, 8});
  Muls(a, b, 2, n); Muls(a, b, 2.0, ln); Muls(h, h2, (half)2, un); Muls<half>(h, h2, 2.0f, 64); Muls(a, b, static_cast<float>(1) / ln, un); Muls<float, false>(a, b, 1.0f, MASK_PLACEHOLDER, 1, {1, 1, 8, 8});
  Adds(i, i, 3, n); Maxs(a, b, 0.0f, 64, 1, {1, 1, 8, 8}); Mins(a, b, 1.0f, mask, 1, {1, 1, 8, 8}); ShiftLeft(i, i, 2, n); ShiftRight(i, i, int32_t(2), 64, 1, {1, 1, 8, 8}); ShiftRight(i, i, 2, 64, 1, {1, 1, 8, 8}, false);
  Cast(h2, a, RoundMode::CAST_NONE, n); Cast<half, float>(h2, a, RoundMode::CAST_RINT, un); Cast<half, float, false>(h2, a, RoundMode::CAST_NONE, MASK_PLACEHOLDER, 1, {1, 1, 4, 8}); Cast(h2, a, AscendC::RoundMode::CAST_NONE, 64, 1, {1, 1, 4, 8}); Cast(h2, a, RoundMode::CAST_NONE, mask, 1, {1, 1, 4, 8});
  Exp(a, b, n); Ln(a, b, 64, 1, {1, 1, 8, 8}); Abs<float, false>(a, b, MASK_PLACEHOLDER, 1, {1, 1, 8, 8}); Sqrt(a, b, mask, 1, {1, 1, 8, 8}); Rsqrt(a, b, n); Reciprocal(a, b, n); Relu(h, h2, n); Not(m.ReinterpretCast<uint16_t>(), m.ReinterpretCast<uint16_t>(), n);
  Div(a, b, c, n); MulAddDst(a, b, c, n); Axpy(a, b, 2.0f, n); Axpy<float, half>(c, h, (half)1, n); FusedMulAdd(a, b, c, n); And(m.ReinterpretCast<int16_t>(), m.ReinterpretCast<int16_t>(), m.ReinterpretCast<int16_t>(), n);
  Copy(a, b, 64, 1, {1, 1, 8, 8}); Copy(a, b, mask, 1, {1, 1, 8, 8}); Copy<float, false>(a, b, MASK_PLACEHOLDER, 1, {1, 1, 8, 8});
  Compare(m, a, b, CMPMODE::LT, un); Compare(m, a, b, CMPMODE::LT, 64, 1, {1, 1, 1, 8, 8, 8}); Compare(a, b, CMPMODE::GE, 64, {1, 1, 1, 8, 8, 8}); Compare(a, b, CMPMODE::GE, mask, BinaryRepeatParams());
  Select<float, SELMODE::VSEL_CMPMASK_SPR>(a, b, c, 1, {1, 1, 1, 8, 8, 8}); GetCmpMask(m); SetCmpMask(m);
  CompareScalar(m, a, 0.0f, CMPMODE::LT, un); CompareScalar(m, a, static_cast<float>(0), CMPMODE::LT, 64, 1, {1, 1, 8, 8}); Compares(m, a, 1.0f, CMPMODE::EQ, n);
  CompareScalar<float, uint8_t, false>(m, a, 0.0f, CMPMODE::LT, MASK_PLACEHOLDER, 1, {1, 1, 8, 8});
  Select(a, m[4096], a, b, SELMODE::VSEL_CMPMASK_SPR, un); Select(a, m[4096], a, 0.0f, SELMODE::VSEL_TENSOR_SCALAR_MODE, un); Select(a, m[4096], a, b, SELMODE::VSEL_TENSOR_TENSOR_MODE, 64, 1, {1, 1, 1, 8, 8, 8}); Select<float, uint8_t>(a, m[4096], a, b, SELMODE::VSEL_TENSOR_TENSOR_MODE, un);
  Select(a, m[4096], a, static_cast<float>(0), SELMODE::VSEL_TENSOR_SCALAR_MODE, 64, 1, {1, 1, 1, 8, 8, 8}); Select(a, m[4096].ReinterpretCast<uint16_t>(), a, b, SELMODE::VSEL_CMPMASK_SPR, mask, 1, {1, 1, 1, 8, 8, 8});
  ReduceSum(a, b, w, n); ReduceSum<float>(a, b, w, un); ReduceSum<float, true>(a, b, w, n); ReduceSum<float>(a, b, w, 64, 1, 8); ReduceMax(a, b, w, n); ReduceMax<float>(a, b, w, un, false); ReduceMax(a, b, w, 64, 1, 8, true); ReduceMin(h, h2, w.ReinterpretCast<half>(), n, true);
  WholeReduceSum(a, b, 64, 1, 1, 1, 8); WholeReduceSum<float, false>(a, b, MASK_PLACEHOLDER, 1, 1, 1, 8); WholeReduceSum(a, b, mask, 1, 1, 1, 8); WholeReduceMax<float>(a, b, 64, rep, 1, 1, 8, ReduceOrder::ORDER_ONLY_VALUE); WholeReduceMax(a, b, n, 1, 1, 1, 8); WholeReduceMin<float, false>(a, b, MASK_PLACEHOLDER, 1, 1, 1, 8, ReduceOrder::ORDER_INDEX_VALUE);
  BlockReduceSum(a, b, 1, 64, 1, 1, 8); BlockReduceMax<float, false>(a, b, rep, MASK_PLACEHOLDER_LIST, 1, 1, 8); BlockReduceMin<float>(a, b, 1, mask, 1, 1, 8); PairReduceSum(a, b, 1, 64, 1, 1, 8); RepeatReduceSum(a, b, 1, 64, 0, 1, 1, 8); RepeatReduceSum<float, false>(a, b, 1, MASK_PLACEHOLDER, 0, 1, 1, 8);
  Brcb(a, b, 1, {1, 8}); Gather(a, b, c.ReinterpretCast<uint32_t>()[1024], 0, un); Gather(a, b, c.ReinterpretCast<uint32_t>()[1024], (uint32_t)0, 64, 1, 8);
  uint64_t cnt = 0; GatherMask(a, b, 1, true, 64, {1, 1, 8, 8}, cnt); GatherMask(a, b, c.ReinterpretCast<uint32_t>(), true, un, {1, 1, 8, 8}, cnt); GatherMask<float>(a, b, (uint8_t)3, false, 0, GatherMaskParams(1, 1, 8, 0), cnt); GatherMask(h, h2, c.ReinterpretCast<uint16_t>(), true, un, {1, 1, 8, 8}, cnt);
  CreateVecIndex(i, 0, un); CreateVecIndex(a, 0.0f, 64); ArithProgression(i, 0, 1, n); ArithProgression<float>(a, 0.0f, 2.0f, n); CreateVecIndex(i, static_cast<int32_t>(0), ln);
  SetMaskCount(); SetVectorMask<float, MaskMode::COUNTER>(n); SetMaskNorm(); SetVectorMask<half, MaskMode::NORMAL>(-1, -1); SetVectorMask<half>(0, 1); ResetMask(); set_mask_norm(); set_vector_mask((uint64_t)-1, (uint64_t)-1);
  SetDeqScale(half(1)); SetDeqScale(static_cast<half>(1.0)); 
  DataCopy(a, g, n); DataCopy(a, g[8], 64); DataCopy<float>(a, g, un); DataCopy(a, g, {1, 8, 0, 0}); DataCopyParams dp; dp.blockCount = 1; dp.blockLen = 1; dp.srcGap = 0; dp.dstGap = 0; DataCopy(a, g, dp); DataCopy(a, b, n); DataCopy(a, b, {1, 1, 0, 0}); DataCopy(g, a, n);
  DataCopyPad(a, g, {1, 4, 0, 0, 0}, {false, 0, 0, 0}); DataCopyPad(a, g, DataCopyExtParams{1, un, 0, 0, 0}, DataCopyPadExtParams<float>{true, 0, 1, 0.0f}); DataCopyPad(a, g, DataCopyParams{1, 4, 0, 0}, DataCopyPadParams{true, 0, 0, 0}); DataCopyPad(g, a, {1, 4, 0, 0, 0}); DataCopyPad(g, a, {1, 4, 0, 0}); DataCopyPad<float>(g, a, {1, 4, 0, 0, 0});
  DataCopyPadExtParams<half> pe; pe.isPad = true; pe.paddingValue = 0; pe.rightPadding = 1; 
  a(0) = 1; a(1) = a(0) + 1.0f; a(2) = b(3); float f = a(0); f += (float)a(1); if (a(0) > 0) f = a.GetValue(0); a.SetValue(0, f); a.SetValue(un, 0); a.SetValue(ln, half(1)); half hv = h.GetValue(0); hv = hv + (half)1; float hf = static_cast<float>(hv) * 2;
  i.SetValue(0, i.GetValue(0) + 1); int32_t iv = i(0); g.SetValue(0, 1.0f); f = g.GetValue(0); f = g(1); 
  auto q = kk.ques[0].AllocTensor<float>(); kk.ques[0].EnQue<QuePosition::GM, QuePosition::VECIN, float>(q); q = kk.ques[0].DeQue<QuePosition::GM, QuePosition::VECIN, float>(); kk.ques[0].FreeTensor<float>(q);
  q = kk.bind.AllocTensor<float>(); kk.bind.EnQue<float>(q); LocalTensor<float> q2 = kk.bind.DeQue<float>(); kk.bind.FreeTensor(q2);
  PipeBarrier<PIPE_V>(); PipeBarrier<PIPE_ALL>(); pipe_barrier(PIPE_ALL); SyncOf<HardEvent::V_S>(HardEvent::V_S); TEventID id = GetTPipePtr()->AllocEventID<HardEvent::MTE3_MTE2>(); SetFlag<HardEvent::MTE3_MTE2>(id); WaitFlag<HardEvent::MTE3_MTE2>(id); pipe.ReleaseEventID<HardEvent::MTE3_MTE2>(id);
  SetAtomicAdd<float>(); SetAtomicNone(); SetAtomicType<float>(); SetAtomicNone(); DataCacheCleanAndInvalid<float, CacheLine::ENTIRE_DATA_CACHE>(g); DataCacheCleanAndInvalid<float, CacheLine::SINGLE_CACHE_LINE, DcciDst::CACHELINE_OUT>(g); dcci((__gm__ uint64_t *)x, 0, 2);
  LocalTensor<int4b_t> i4 = a.ReinterpretCast<int4b_t>(); Cast(i4, h2, RoundMode::CAST_RINT, 64); Cast(h2, i4, RoundMode::CAST_NONE, 64);
  uint32_t s = AlignUp(un, (uint32_t)32) + DivCeil(un, 8) + (uint32_t)Ceil(ln, 8) + Max(n, 3) + CeilDivision(n, 3) + min(un, 3u) + max(n, 3) + std::min(un, 3u) + Std::max(un, 3u); s += GetBlockIdx() + GetBlockNum() + GetSubBlockIdx() + GetTaskRation() + GetSubBlockNum();
  if (s == 0xFFFFFFFF) { AscendC::printf("x %d\n", s); PRINTF("%d", n); printf("%d", n); assert(n > 0); ascendc_assert(n > 0, "no"); }
  bfloat16_t bf = ToBfloat16(1.0f); float fb = ToFloat(bf); int32_t si = ScalarCast<float, int32_t, RoundMode::CAST_RINT>(1.5f); int64_t cz = ScalarCountLeadingZero(1); int64_t pc = ScalarGetCountOfValue<1>(5); int64_t sf = ScalarGetSFFValue<1>(4);
  LocalTensor<float> t3; TBuffAddr addr; addr.logicPos = static_cast<uint8_t>(TPosition::VECCALC); addr.bufferAddr = 0; addr.dataLen = 256; t3.SetAddr(addr); 
  g.SetL2CacheHint(CacheMode::CACHE_MODE_DISABLE); g.template SetL2CacheHint<CacheRwMode::READ>(CacheMode::CACHE_MODE_NORMAL);
  float inf = INFINITY, nan = NAN, big = FLT_MAX; float lim = std::numeric_limits<float>::max(); uint32_t um = UINT32_MAX; 
  if constexpr (std::is_same<float, half>::value || IsSameType<float, float>::value) {} if ASCEND_IS_AIV { n = 1; } if (g_coreType == AIV) { n = 2; } if (GetBlockIdx() >= GetBlockNum()) return;
  SetSaturationFlag(true);
  LocalTensor<float> la(TPosition::VECIN, 1024, 64); uint64_t pa = a.GetPhyAddr(); pa += a[8].GetPhyAddr(); uint32_t sz = a.GetSize() + a.GetLength(); 
  LocalTensor<half> hc = a.template ReinterpretCast<half>()[16]; Add(a, a, b, static_cast<int32_t>(sn)); a = b + c; a.SetSize(64); a = b * c; 

}
