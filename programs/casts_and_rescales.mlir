// A quantised layer's conversions as TOSA text: int32 sums per channel to int8, and an f32 branch cast to int8.
// arg0 i32 [16, 4], arg1 f32 [16, 4].
module {
  func.func @main(%arg0: tensor<16x4xi32>, %arg1: tensor<16x4xf32>) -> (tensor<64xi8>, tensor<16x4xi8>, tensor<16x4xi16>) {
    %mult = "tosa.const"() <{values = dense<[1073741824, 1717986918, 1374389535, 2147483647]> : tensor<4xi32>}> : () -> tensor<4xi32>
    %shift = "tosa.const"() <{values = dense<[37, 38, 40, 33]> : tensor<4xi8>}> : () -> tensor<4xi8>
    %izp = "tosa.const"() <{values = dense<0> : tensor<1xi32>}> : () -> tensor<1xi32>
    %ozp = "tosa.const"() <{values = dense<-5> : tensor<1xi8>}> : () -> tensor<1xi8>
    %0 = tosa.rescale %arg0, %mult, %shift, %izp, %ozp {input_unsigned = false, output_unsigned = false, per_channel = true, rounding_mode = DOUBLE_ROUND, scale32 = true} : (tensor<16x4xi32>, tensor<4xi32>, tensor<4xi8>, tensor<1xi32>, tensor<1xi8>) -> tensor<16x4xi8>
    %1 = tosa.const_shape {values = dense<64> : tensor<1xindex>} : () -> !tosa.shape<1>
    %2 = tosa.reshape %0, %1 : (tensor<16x4xi8>, !tosa.shape<1>) -> tensor<64xi8>
    %3 = tosa.cast %arg1 : (tensor<16x4xf32>) -> tensor<16x4xi8>
    %4 = tosa.identity %3 : (tensor<16x4xi8>) -> tensor<16x4xi8>
    %5 = tosa.cast %4 : (tensor<16x4xi8>) -> tensor<16x4xi16>
    return %2, %4, %5 : tensor<64xi8>, tensor<16x4xi8>, tensor<16x4xi16>
  }
}
