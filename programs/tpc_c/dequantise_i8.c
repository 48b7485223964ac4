// f32 = (i8 - zero) * scale: the unpacked load spreads bytes so that the all-lanes conversion leaves them in order.
// gaudi2. Index space: ceil(size 0 / 256), size 1.
void main(tensor x, tensor y, float scale, float zero)
{
    const int5 start = get_index_space_offset();
    const int5 end = get_index_space_size() + start;
    for (int row = start[1]; row < end[1]; row++)
    {
        for (int column = start[0] * 256; column < end[0] * 256; column += 256)
        {
            int5 at = {column, row};
            char256 codes = v_i8_ld_tnsr_b(at, x, SW_UNPACK | SW_UNPCK_8_TO_32);
            float256 wide = v_convert_i8_to_f32_all_b(codes);
            v_f32_st_tnsr(at, y, (wide.v1 - zero) * scale);
            at[0] += 64;
            v_f32_st_tnsr(at, y, (wide.v2 - zero) * scale);
            at[0] += 64;
            v_f32_st_tnsr(at, y, (wide.v3 - zero) * scale);
            at[0] += 64;
            v_f32_st_tnsr(at, y, (wide.v4 - zero) * scale);
        }
    }
}
