/* product.c - the shapes of matrix products. */
#include "infer/product.h"

#include "common/fail.h"
#include "infer/op.h"

lw_status lw_product_of(lw_product *p, const lw_tensor *a, const lw_tensor *b, lw_error *err)
{
    *p = (lw_product){.batches = 1};
    char ta[160], tb[160];
    if (!a || !b)
        return lw_fail(err, LW_E_INPUT, "an operand is missing");
    if (a->rank == 0 || b->rank == 0)
        return lw_fail(err, LW_E_INPUT, "a product of scalars");
    p->m = a->rank > 1 ? a->dim[a->rank - 2] : 1;
    p->k = a->dim[a->rank - 1];
    p->n = b->rank > 1 ? b->dim[b->rank - 1] : 1;
    int64_t kb = b->rank > 1 ? b->dim[b->rank - 2] : b->dim[0];
    lw_tensor la = *a, lb = *b; /* only their leading dimensions */
    la.rank = a->rank > 2 ? a->rank - 2 : 0;
    lb.rank = b->rank > 2 ? b->rank - 2 : 0;
    if (p->k != kb || lw_broadcast(&la, &lb, &p->batch_rank, p->batch_dim, NULL) != LW_OK)
        return lw_fail(err, LW_E_INPUT, "shapes do not agree: %s times %s", lw_tensor_text(a, ta, sizeof ta),
                       lw_tensor_text(b, tb, sizeof tb));
    lw_broadcast_strides(&la, p->batch_rank, p->a_stride);
    lw_broadcast_strides(&lb, p->batch_rank, p->b_stride);
    for (int i = 0; i < p->batch_rank; i++) {
        p->batches *= p->batch_dim[i];
        p->dim[p->rank++] = p->batch_dim[i];
    }
    if (a->rank > 1)
        p->dim[p->rank++] = p->m;
    if (b->rank > 1)
        p->dim[p->rank++] = p->n;
    return LW_OK;
}

void lw_product_offsets(const lw_product *p, int64_t batch, int64_t *a, int64_t *b)
{
    *a = *b = 0;
    for (int i = p->batch_rank - 1; i >= 0; i--) {
        int64_t at = batch % p->batch_dim[i];
        batch /= p->batch_dim[i];
        *a += at * p->a_stride[i];
        *b += at * p->b_stride[i];
    }
}
