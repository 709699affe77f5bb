
predict4
data
fy"Conv*

kernel*
order"NCHW:CUDNN
yyrelu"Relu
w0
placesz"Gather*
y
ybothsplit"Concat*
texts:a:b:data:places:w0:fBbothBz