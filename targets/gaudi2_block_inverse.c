// The inverses of lower triangular blocks of 16 x 16 numbers with ones on the diagonal, by forward substitution: row i
// of the inverse is row i of the identity minus a[i][j] times row j, for each j < i. Every a[i][j] is a scalar load of
// global memory, 120 in a block. Index space: 1, blocks.
void main(tensor a, tensor inverse)
{
    const int5 start = get_index_space_offset();
    const int5 end = get_index_space_size() + start;
    const float64 lane = convert_int64_to_float64(read_lane_id_4b_b(), 0);
    for (int block = start[1]; block < end[1]; block++)
    {
        float64 rows[16];
        int5 from = {0, 0, block};
        int5 to = {0, 0, block};
#pragma unroll
        for (int i = 0; i < 16; i++)
        {
            float64 row = v_f32_sel_eq_f32_b(lane, (float)i, 1.0f, 0.0f);
#pragma unroll
            for (int j = 0; j < i; j++)
            {
                from[0] = j;
                from[1] = i;
                row = v_f32_mac_b(rows[j], s_f32_ld_g(gen_addr(from, a)), row, SW_NEG);
            }
            rows[i] = row;
            to[1] = i;
            v_f32_st_tnsr(to, inverse, row);
        }
    }
}
