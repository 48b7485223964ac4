// Each row minus its projection on the row before it, as transformed, and then times its own squared length: two sums
// over a row, and every row waits for both of the last. Index space: 1, 1, matrices.
void main(tensor x, tensor y)
{
    const int5 start = get_index_space_offset();
    const int5 end = get_index_space_size() + start;
    for (int matrix = start[2]; matrix < end[2]; matrix++)
    {
        float64 before = 0.0f;
        for (int row = 0; row < 64; row++)
        {
            int5 at = {0, row, matrix};
            float64 numbers = v_f32_ld_tnsr_b(at, x);
            float64 share = v_f32_reduce_add(numbers * before);
            numbers = v_f32_mac_b(share, before, numbers, SW_NEG);
            before = numbers * v_f32_reduce_add(numbers * numbers);
            v_f32_st_tnsr(at, y, before);
        }
    }
}
