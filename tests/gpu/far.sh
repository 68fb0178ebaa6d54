# Tensors of more than 2^31 elements: rows that begin far beyond where 32 bits reach. Needs 24 GB of free memory.
free=$(awk '/^MemAvailable/ { print int($2 / 1048576) }' /proc/meminfo)
if [ "$free" -lt 24 ]; then
  echo "there are $free GB of free memory, and this needs 24: nothing was compared"
  exit 0
fi
cat >far.table <<'T'
%x x_ptr=list(0.5,-1,2,0.25,-3,1.5,0.75):bf16[2300,1000003]
1e-6  out_ptr softmax.py:softmax_kernel 100 %x out_ptr=zeros:f32[2300,100] x_row_stride=1000003 out_row_stride=100 n_rows=2300 n_cols=100
      BLOCK_SIZE=128
1e-5  loss_ptr,lse_ptr cross_entropy.py:cross_entropy_kernel 2300 %x target_ptr=randint(0,100):i64[2300] loss_ptr=zeros:f32[2300]
      lse_ptr=zeros:f32[2300] row_stride=1000003 n_cols=100 ignore=-100 smoothing=0.0 penalty=0.0 BLOCK=64
# A's rows are far apart, then its columns
1e-4  c_ptr gemm.py:gemm_kernel 36,1 a_ptr=list(0.5,-1,2,0.25,-3,1.5,0.75):bf16[2300,1000003] b_ptr=randn:bf16[64,40] c_ptr=zeros:f32[2300,40]
      bias_ptr=None residual_ptr=None alpha=1.0 M=2300 N=40 K=64 stride_ab=0 stride_am=1000003 stride_ak=1 stride_bb=0 stride_bk=40
      stride_bn=1 stride_cb=0 stride_cm=40 stride_cn=1 stride_rb=0 stride_rm=0 stride_rn=0 BLOCK_M=64 BLOCK_N=64 BLOCK_K=32 GROUP_M=4
1e-4  out_ptr,lse_ptr attention_varlen.py:attention_varlen_kernel 1,4 HEAD_DIM=64 scale=0.125 q_ptr=randn:bf16[4,40,64]
      k_ptr=list(0.5,-1,2,0.25,-3,1.5,0.75):bf16[2300000000] v_ptr=list(1,-2,0.5,0.25,3):bf16[2300000000] out_ptr=zeros:f32[4,40,64]
      lse_ptr=zeros:f32[4,40] cu_q_ptr=None cu_k_ptr=None seq_q=40 seq_k=70 rows_q=40 q_batch=2560 q_head=2560 q_row=64
      k_batch=700000000 k_head=0 k_row=1000001 heads=1 kv_heads=1 BLOCK_M=64 BLOCK_N=32 CAUSAL=True
T
table far.table
