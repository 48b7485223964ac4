"""Kernels of TileLang for tests: what the examples in `programs/tilelang` do not use."""

import tilelang
from tilelang.ascend import language as T  # noqa: N812 - its own convention
from tilelang.ascend.language import simd as S  # noqa: N812


@tilelang.jit
def softmax_by_threads(dtype):
    """A gather, sums over threads, a choice for each element; rows in tiles on two cores."""
    n = T.dynamic("n")

    @T.prim_func
    def kernel(
        x: T.Tensor[(n, 256), dtype], index: T.Tensor[(256,), T.int32], y: T.Tensor[(n, 256), dtype],
        total: T.Tensor[(n,), T.float32],
    ):  # fmt: skip
        with T.Kernel(2) as core:
            x_ub = T.alloc_shared((4, 256), dtype)
            y_ub = T.alloc_shared((4, 256), dtype)
            total_ub = T.alloc_shared((4,), T.float32)
            index_ub = T.alloc_shared((256,), T.int32)
            T.copy(index, index_ub)
            for tile in T.Persistent([T.ceildiv(n, 4)], 2, core, num_stages=2):
                T.copy(x[tile * 4, 0], x_ub)
                with T.SimtVF(threads=128):
                    e = T.alloc_fragment((4, 256), T.float32)
                    s = T.alloc_fragment((4,), T.float32)
                    for i, j in T.Parallel(4, 256):
                        e[i, j] = T.exp(T.cast(x_ub[i, index_ub[j]], T.float32))
                    T.reduce_sum(e, s, dim=1)
                    for i in T.Parallel(4):
                        total_ub[i] = s[i]
                    for i, j in T.Parallel(4, 256):
                        if index_ub[j] > 7:
                            y_ub[i, j] = T.cast(e[i, j] / s[i], dtype)
                        else:
                            y_ub[i, j] = T.cast(T.sigmoid(T.cast(x_ub[i, j], T.float32)), dtype)
                T.copy(y_ub, y[tile * 4, 0])
                T.copy(total_ub, total[tile * 4])

    return kernel


@tilelang.jit
def warps(cores):
    """Reductions of a warp, a loop that ends for each thread on its own, atomic counts that all cores share."""

    @T.prim_func
    def kernel(
        x: T.Tensor[(4, 256), T.int32], y: T.Tensor[(4, 32), T.int32], most: T.Tensor[(4, 32), T.int32],
        count: T.Tensor[(8,), T.int32],
    ):  # fmt: skip
        with T.Kernel(cores) as core:
            x_ub = T.alloc_shared((4, 256), T.int32)
            y_ub = T.alloc_shared((4, 32), T.int32)
            most_ub = T.alloc_shared((4, 32), T.int32)
            T.copy(x, x_ub)
            with T.SimtVF(threads=128):
                tid = T.get_thread_binding()
                acc = T.alloc_var(T.int32, init=0)
                for k in T.serial(8):
                    acc += x_ub[tid // 32, k * 32 + tid % 32]
                most_ub[tid // 32, tid % 32] = T.warp_reduce_max(acc)
                total = T.warp_reduce_sum(acc)
                k = T.alloc_var(T.int32, init=0)
                while k < tid % 5:
                    k += 1
                    if k == 3:
                        T.loop_break()
                    acc += 1000
                y_ub[tid // 32, tid % 32] = total + acc
                T.atomic_add(count[tid % 8], core + 1)
            if core == 0:
                T.copy(y_ub, y)
                T.copy(most_ub, most)

    return kernel


@tilelang.jit
def sums_by_reducer():
    """A reduction whose epoch spans a parallel loop."""

    @T.prim_func
    def kernel(x: T.Tensor[(64, 256), T.float32], z: T.Tensor[(64,), T.float32]):
        with T.Kernel(1) as _:
            x_ub = T.alloc_shared((64, 256), T.float32)
            z_ub = T.alloc_shared((64,), T.float32)
            T.copy(x, x_ub)
            with T.SimtVF(threads=128):
                acc = T.alloc_reducer((64,), T.float32, "sum")
                f = T.alloc_fragment((64,), T.float32)
                T.reducer_init(acc)
                for i, j in T.Parallel(64, 256):
                    T.reducer_update(acc[i], x_ub[i, j])
                T.finalize_reducer(acc, f)
                for i in T.Parallel(64):
                    z_ub[i] = f[i]
            T.copy(z_ub, z)

    return kernel


@tilelang.jit
def draws():
    """Philox words, uniform numbers and normal ones."""

    @T.prim_func
    def kernel(seed: T.int32, word: T.Tensor[(5, 128), T.uint32], u: T.Tensor[(128,), T.float32],
               normal: T.Tensor[(2, 128), T.float32]):  # fmt: skip
        with T.Kernel(1) as _:
            word_ub = T.alloc_shared((5, 128), T.uint32)
            u_ub = T.alloc_shared((128,), T.float32)
            normal_ub = T.alloc_shared((2, 128), T.float32)
            with T.SimtVF(threads=128):
                tid = T.get_thread_binding()
                T.rng_init(seed, tid, 0)
                for i in T.serial(5):
                    word_ub[i, tid] = T.rng_rand()
                u_ub[tid] = T.rng_rand_float()
                for i in T.serial(2):
                    normal_ub[i, tid] = T.rng_rand_float(dist="normal")
            T.copy(word_ub, word)
            T.copy(u_ub, u)
            T.copy(normal_ub, normal)

    return kernel


@tilelang.jit
def sum_of_cores(cores):
    """Each core sums its rows; behind two flags all of them read what the others have stored."""

    @T.prim_func
    def kernel(
        x: T.Tensor[(cores * 4, 64), T.float32], part: T.Tensor[(cores, 64), T.float32],
        whole: T.Tensor[(cores, 64), T.float32], z: T.Tensor[(64,), T.float32],
    ):  # fmt: skip
        with T.Kernel(cores) as core:
            x_ub = T.alloc_shared((4, 64), T.float32)
            sum_ub = T.alloc_shared((64,), T.float32)
            part_ub = T.alloc_shared((cores, 64), T.float32)
            T.copy(x[core * 4, 0], x_ub)
            with T.SimdVF():
                total = S.alloc_var(T.float32)
                total = S.vdup(0.0, T.float32)
                for row in T.serial(4):
                    total = S.vadd(total, S.vld(x_ub[row, 0]))
                S.vsts(sum_ub[0], total)
            T.copy(sum_ub, part[core, 0])
            T.ascend_sync_inter_arrive("PIPE_MTE3", 0)
            T.ascend_sync_inter_wait("PIPE_MTE2", 0)
            T.copy(part, part_ub)
            with T.SimdVF():
                total = S.alloc_var(T.float32)
                total = S.vdup(0.0, T.float32)
                for other in T.serial(cores):
                    total = S.vadd(total, S.vld(part_ub[other, 0]))
                S.vsts(sum_ub[0], total)
            T.copy(sum_ub, whole[core, 0])
            T.ascend_sync_inter_arrive("PIPE_MTE3", 0)
            T.ascend_sync_inter_wait("PIPE_MTE2", 0)
            if core == 0:
                T.copy(whole, part_ub)
                with T.SimdVF():
                    S.vsts(sum_ub[0], S.vadd(S.vld(part_ub[0, 0]), S.vld(part_ub[cores - 1, 0])))
                T.copy(sum_ub, z)

    return kernel


@tilelang.jit
def doubled_in_place():
    """Rows of the tensors that a table of pointers names, chosen by an index of another array, times two."""
    count, rows = T.dynamic("count"), T.dynamic("rows")

    @T.prim_func
    def kernel(which: T.Tensor[(rows,), T.int32], table: T.Tensor[(count,), T.ptr], y: T.Tensor[(rows, 64), T.float32]):
        with T.Kernel(1) as _:
            row_ub = T.alloc_shared((64,), T.float32)
            for row in T.serial(rows):
                tensor = T.make_tensor(table[which[row]], (rows, 64), T.float32)
                T.copy(tensor[row, 0], row_ub)
                with T.SimdVF():
                    S.vsts(row_ub[0], S.vmuls(S.vld(row_ub[0]), 2.0))
                T.copy(row_ub, tensor[row, 0])
                T.copy(row_ub, y[row, 0])

    return kernel


@tilelang.jit
def rows_by_index():
    """Indices that the scalar unit loads inside a vector function, up to the first negative one."""

    @T.prim_func
    def kernel(
        x: T.Tensor[(64, 64), T.float32], index: T.Tensor[(16,), T.int32], y: T.Tensor[(16, 64), T.float32],
        count: T.Tensor[(64,), T.float32],
    ):  # fmt: skip
        with T.Kernel(1) as _:
            x_ub = T.alloc_shared((64, 64), T.float32)
            index_ub = T.alloc_shared((16,), T.int32)
            y_ub = T.alloc_shared((16, 64), T.float32)
            count_ub = T.alloc_shared((64,), T.float32)
            T.copy(x, x_ub)
            T.copy(index, index_ub)
            found = T.alloc_var(T.int32, init=0)
            for row in T.serial(16):
                if index_ub[row] < 0:
                    T.loop_break()
                found = found + 1
            T.fill(y_ub, 0.5)
            with T.SimdVF():
                for row in T.serial(found):
                    value = S.vld(x_ub[index_ub[row], 0])
                    S.vsts(y_ub[row, 0], S.vmuls(value, T.cast(index_ub[row], T.float32)))
                S.vsts(count_ub[0], S.vdup(T.cast(found, T.float32), T.float32))
            T.copy(y_ub, y)
            T.copy(count_ub, count)

    return kernel


@tilelang.jit
def applied(operation, source, result, lanes, load, store):
    """An operation on registers of two arrays and a mask of eight lanes: three registers each."""
    into, out = lanes
    bits = T.dtype(source).bits

    @T.prim_func
    def kernel(a: T.Tensor[(3 * into,), source], b: T.Tensor[(3 * into,), source], y: T.Tensor[(3 * out,), result]):
        with T.Kernel(1) as _:
            a_ub = T.alloc_shared((3 * into,), source)
            b_ub = T.alloc_shared((3 * into,), source)
            y_ub = T.alloc_shared((3 * out,), result)
            T.copy(a, a_ub)
            T.copy(b, b_ub)
            with T.SimdVF():
                few = S.pset(bits, "PAT_VL8")
                for i in T.serial(3):
                    u = S.vld(a_ub[i * into], dist=load)
                    v = S.vld(b_ub[i * into], dist=load)
                    S.vsts(y_ub[i * out], operation(u, v, few), dist=store)
            T.copy(y_ub, y)

    return kernel


@tilelang.jit
def tiles(columns, block):
    """Rows and columns in tiles whose last ones are cut short, on two cores."""
    n = T.dynamic("n")

    @T.prim_func
    def kernel(x: T.Tensor[(n, columns), T.float32], y: T.Tensor[(n, columns), T.float32], factor: T.float32):
        with T.Kernel(2) as core:
            tile_ub = T.alloc_shared((8, block), T.float32)
            for i, j in T.Persistent([T.ceildiv(n, 8), T.ceildiv(columns, block)], 2, core, num_stages=2):
                T.copy(x[i * 8, j * block], tile_ub)
                with T.SimdVF():
                    for row in T.serial(8):
                        for chunk in T.serial(block // 64):
                            value = S.vld(tile_ub[row, chunk * 64])
                            S.vsts(tile_ub[row, chunk * 64], S.vmuls(value, factor))
                T.copy(tile_ub, y[i * 8, j * block])

    return kernel


@tilelang.jit
def pointers():
    """Pointers that loads and stores advance, masks in memory, gathers of blocks and elements, a scatter."""

    @T.prim_func
    def kernel(
        x: T.Tensor[(512,), T.float32], blocks: T.Tensor[(64,), T.uint32], index: T.Tensor[(64,), T.int32],
        more: T.Tensor[(512,), T.float32], turned: T.Tensor[(512,), T.float32], put: T.Tensor[(512,), T.float32],
        taken: T.Tensor[(192,), T.float32],
    ):  # fmt: skip
        with T.Kernel(1) as _:
            x_ub = T.alloc_shared((512,), T.float32)
            more_ub = T.alloc_shared((512,), T.float32)
            turned_ub = T.alloc_shared((512,), T.float32)
            put_ub = T.alloc_shared((512,), T.float32)
            taken_ub = T.alloc_shared((192,), T.float32)
            blocks_ub = T.alloc_shared((64,), T.uint32)
            index_ub = T.alloc_shared((64,), T.int32)
            mask_ub = T.alloc_shared((64,), T.uint32)
            T.copy(x, x_ub)
            T.copy(blocks, blocks_ub)
            T.copy(index, index_ub)
            with T.SimdVF():
                source = S.make_ubuf_ptr(T.access_ptr(x_ub[0], "r", extent=512), "float32")
                target = S.make_ubuf_ptr(T.access_ptr(turned_ub[0], "w", extent=512), "float32")
                for k in T.serial(8):
                    value, source = S.vld(source, post_inc=64)
                    S.vsts(more_ub[k * 64], S.vadds(value, 1.0))
                    target = S.vsstb(value, target, (8 << 16) | 1, update=True)
                    S.vsts(put_ub[k * 64], S.vdup(0.0, T.float32))
                S.mem_bar("VST_VST")
                first = S.vld(x_ub[0])
                places = S.vld(index_ub[0])
                S.vscatter(first, put_ub[0], places)
                S.vsts(taken_ub[0], S.vgather2(x_ub[0], places))
                S.vsts(taken_ub[64], S.vgatherb(x_ub[0], S.vld(blocks_ub[0])))
                S.pst(mask_ub[0], S.vcmps(first, 0.0, op="gt"))
                S.mem_bar("VST_VLD")
                S.vsts(taken_ub[128], S.vadds(first, 1.0, S.pld(mask_ub[0])))
            T.copy(more_ub, more)
            T.copy(turned_ub, turned)
            T.copy(put_ub, put)
            T.copy(taken_ub, taken)

    return kernel


@tilelang.jit
def conditions():
    """Registers and scalars that conditions on elements change, for rows that are there."""
    n = T.dynamic("n")

    @T.prim_func
    def kernel(x: T.Tensor[(n, 64), T.float32], which: T.Tensor[(n,), T.int32], y: T.Tensor[(n, 64), T.float32],
               total: T.Tensor[(8,), T.float32], limit: T.int32):  # fmt: skip
        with T.Kernel(1) as _:
            x_ub = T.alloc_shared((8, 64), T.float32)
            which_ub = T.alloc_shared((8,), T.int32)
            total_ub = T.alloc_shared((8,), T.float32)
            T.copy(x, x_ub[:n, :])
            T.copy(which, which_ub[:n])
            total_ub[0] = 0.0
            scalar = T.alloc_var(T.float32, init=0.0)
            for i in T.serial(n):
                scalar += T.if_then_else(which_ub[i] > limit, T.floor(x_ub[i, 1]), T.abs(x_ub[i, 0]))
                total_ub[i] = scalar
            with T.SimdVF():
                kept = S.alloc_var(T.float32)
                kept = S.vdup(0.0, T.float32)
                for i in T.serial(n):
                    if which_ub[i] == limit:
                        kept = S.vadd(kept, S.vld(x_ub[i, 0]))
                    elif which_ub[i] > limit:
                        kept = S.vmuls(kept, 0.5)
                    S.vsts(x_ub[i, 0], kept)
            T.copy(x_ub[:n, :], y)
            T.copy(total_ub[:n], total[:n])

    return kernel


@tilelang.jit
def scalars():
    """Arithmetic of the scalar unit on every kind of number."""

    @T.prim_func
    def kernel(
        i: T.Tensor[(16,), T.int32], u: T.Tensor[(16,), T.uint32], w: T.Tensor[(16,), T.int64],
        f: T.Tensor[(16,), T.float32], a: T.Tensor[(16,), T.int32], b: T.Tensor[(16,), T.uint32],
        c: T.Tensor[(16,), T.int64], d: T.Tensor[(16,), T.float32],
    ):  # fmt: skip
        with T.Kernel(1) as _:
            i_ub = T.alloc_shared((16,), T.int32)
            u_ub = T.alloc_shared((16,), T.uint32)
            w_ub = T.alloc_shared((16,), T.int64)
            f_ub = T.alloc_shared((16,), T.float32)
            T.copy(i, i_ub)
            T.copy(u, u_ub)
            T.copy(w, w_ub)
            T.copy(f, f_ub)
            for k in T.serial(16):
                f_ub[k] = T.clamp(f_ub[k], -1.0, 1.0) + T.cast(i_ub[k], T.float32)
                w_ub[k] = w_ub[k] // T.int64(3) + T.cast(i_ub[k], T.int64) % T.int64(5)
                if u_ub[k] > T.uint32(0x80000000):
                    u_ub[k] = (u_ub[k] >> T.uint32(3)) ^ u_ub[k]
                else:
                    u_ub[k] = u_ub[k] * T.uint32(2654435761)
                i_ub[k] = T.clamp(T.truncmod(i_ub[k], 7), -3, T.min(T.max_value(T.int32), 2))
            T.copy(i_ub, a)
            T.copy(u_ub, b)
            T.copy(w_ub, c)
            T.copy(f_ub, d)

    return kernel


@tilelang.jit
def sums_in_place(mode):
    """The three operations that add a product to a register in place, or multiply it first, in eight lanes."""

    @T.prim_func
    def kernel(x: T.Tensor[(192,), T.float32], y: T.Tensor[(192,), T.float32]):
        with T.Kernel(1) as _:
            x_ub = T.alloc_shared((192,), T.float32)
            y_ub = T.alloc_shared((192,), T.float32)
            T.copy(x, x_ub)
            with T.SimdVF():
                few = S.pset(32, "PAT_VL8")
                kept = S.alloc_local(3, T.float32)
                for part in T.unroll(3, explicit=True):
                    kept[part] = S.vld(x_ub[128])
                S.vmula(kept[0], S.vld(x_ub[0]), S.vld(x_ub[64]), few, mode=mode)
                S.vmadd(kept[1], S.vld(x_ub[0]), S.vld(x_ub[64]), few, mode=mode)
                S.vaxpy(kept[2], S.vld(x_ub[0]), 3.0, few, mode=mode)
                for part in T.unroll(3, explicit=True):
                    S.vsts(y_ub[part * 64], kept[part])
            T.copy(y_ub, y)

    return kernel
