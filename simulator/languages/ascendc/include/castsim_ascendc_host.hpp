// Words of host code in a kernel's file, which is compiled with it and never run.
#pragma once

using aclError = int;
using aclrtStream = void *;
using aclrtContext = void *;
using aclrtEvent = void *;
constexpr aclError ACL_SUCCESS = 0, ACL_ERROR_NONE = 0;
enum aclrtMemcpyKind { ACL_MEMCPY_HOST_TO_HOST, ACL_MEMCPY_HOST_TO_DEVICE, ACL_MEMCPY_DEVICE_TO_HOST, ACL_MEMCPY_DEVICE_TO_DEVICE };
enum aclrtMemMallocPolicy { ACL_MEM_MALLOC_HUGE_FIRST, ACL_MEM_MALLOC_HUGE_ONLY, ACL_MEM_MALLOC_NORMAL_ONLY };
#define CASTSIM_HOST(NAME) template <typename... A> inline aclError NAME(A &&...) { return ACL_SUCCESS; }
CASTSIM_EACH(CASTSIM_HOST, aclInit, aclFinalize, aclrtSetDevice, aclrtResetDevice, aclrtGetDevice, aclrtGetDeviceCount, aclrtCreateContext,
             aclrtDestroyContext, aclrtSetCurrentContext, aclrtCreateStream, aclrtDestroyStream, aclrtSynchronizeStream, aclrtSynchronizeDevice,
             aclrtMalloc, aclrtMallocHost, aclrtFree, aclrtFreeHost, aclrtMemcpy, aclrtMemcpyAsync, aclrtMemset, aclrtMemsetAsync,
             aclrtCreateEvent, aclrtRecordEvent, aclrtSynchronizeEvent, aclrtEventElapsedTime, aclrtDestroyEvent)
inline const char *aclGetRecentErrMsg() { return ""; }
inline const char *aclrtGetSocName() { return ""; }
namespace platform_ascendc {
enum class CoreMemType { L0_A, L0_B, L0_C, L1, L2, UB, HBM, FB, BT, RESERVED };
enum class SocVersion { ASCEND910B, ASCEND910_93, ASCEND310P, ASCEND950, RESERVED_VERSION = 99999 };
struct PlatformAscendC {
  template <typename... A> PlatformAscendC(A &&...) {}
  uint32_t GetCoreNum() const { return 1; }
  uint32_t GetCoreNumAiv() const { return 1; }
  uint32_t GetCoreNumAic() const { return 1; }
  uint32_t GetLibApiWorkSpaceSize() const { return 0; }
  SocVersion GetSocVersion() const { return SocVersion::ASCEND910B; }
  void GetCoreMemSize(const CoreMemType &, uint64_t &size) const { size = 0; }
};
struct PlatformAscendCManager {
  static PlatformAscendC *GetInstance(const char * = nullptr) { static PlatformAscendC own; return &own; }
};
}  // namespace platform_ascendc
