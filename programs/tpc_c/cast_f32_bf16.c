// f32 to bf16, in order: an all-lanes conversion interleaves two vectors, the packed store puts them one behind the
// other again. Index space: ceil(size 0 / 128), size 1.
void main(tensor x, tensor y)
{
    const int5 start = get_index_space_offset();
    const int5 end = get_index_space_size() + start;
    for (int row = start[1]; row < end[1]; row++)
    {
        for (int column = start[0] * 128; column < end[0] * 128; column += 128)
        {
            int5 at = {column, row};
            float128 pair;
            pair.v1 = v_f32_ld_tnsr_b(at, x);
            at[0] += 64;
            pair.v2 = v_f32_ld_tnsr_b(at, x);
            at[0] -= 64;
            v_bf16_st_tnsr(at, y, v_convert_f32_to_bf16_all_b(pair, SW_RHNE), SW_PACK);
        }
    }
}
