// Conversions between quantised layers as TOSA text: int16 sums per channel to int8, and an f32 branch cast to f16.
// arg0 i16 [16, 4], arg1 f32 [16, 4]. Every node is proven or tried on all codes of its input.
module {
  func.func @main(%arg0: tensor<16x4xi16>, %arg1: tensor<16x4xf32>) -> (tensor<64xi8>, tensor<16x4xf16>) {
    %mult = "tosa.const"() <{values = dense<[16384, 26214, 20972, 32767]> : tensor<4xi16>}> : () -> tensor<4xi16>
    %shift = "tosa.const"() <{values = dense<[21, 22, 24, 17]> : tensor<4xi8>}> : () -> tensor<4xi8>
    %izp = "tosa.const"() <{values = dense<0> : tensor<1xi16>}> : () -> tensor<1xi16>
    %ozp = "tosa.const"() <{values = dense<-5> : tensor<1xi8>}> : () -> tensor<1xi8>
    %0 = tosa.rescale %arg0, %mult, %shift, %izp, %ozp {input_unsigned = false, output_unsigned = false, per_channel = true, rounding_mode = SINGLE_ROUND, scale32 = false} : (tensor<16x4xi16>, tensor<4xi16>, tensor<4xi8>, tensor<1xi16>, tensor<1xi8>) -> tensor<16x4xi8>
    %1 = tosa.const_shape {values = dense<64> : tensor<1xindex>} : () -> !tosa.shape<1>
    %2 = tosa.reshape %0, %1 : (tensor<16x4xi8>, !tosa.shape<1>) -> tensor<64xi8>
    %3 = tosa.cast %arg1 : (tensor<16x4xf32>) -> tensor<16x4xf16>
    return %2, %3 : tensor<64xi8>, tensor<16x4xf16>
  }
}
