#pragma once
namespace vllm_ascend {
enum struct AscendType { FP16 = 0, BF16 = 1, FP32 = 2 };
}
