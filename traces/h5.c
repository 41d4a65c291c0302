#include "traces/h5.h"

#include <errno.h>
#include <hdf5.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/err.h"
#include "base/mem.h"

enum {
    CHUNK = 65536,       /* rows of a column */
    COMPACT = 256,       /* links or attributes kept in the object header */
    MAX_TEXT = 16 << 20, /* bytes of a text; more is taken for corruption */
    MAX_ATTR_INTS = 16
};

struct pl_h5 {
    hid_t file;
};

const char *pl_h5_version(void)
{
    static const char text[] = H5_VERS_INFO; /* "HDF5 library version: 1.10.8" */
    const char *colon = strrchr(text, ' ');
    return colon ? colon + 1 : text;
}

static hid_t type_text(size_t size)
{
    hid_t type = H5Tcopy(H5T_C_S1);
    H5Tset_size(type, size ? size : 1);
    H5Tset_strpad(type, H5T_STR_NULLPAD);
    H5Tset_cset(type, H5T_CSET_UTF8);
    return type;
}

static hid_t type_kind(void)
{
    hid_t type = H5Tenum_create(H5T_STD_I8LE);
    for (int8_t k = 0; k < PL_N_KINDS; k++) H5Tenum_insert(type, pl_kind_names[k], &k);
    return type;
}

/* File type of a column; memory type is the same but for the byte order. */
static hid_t column_type(const struct pl_column *column, size_t text_size)
{
    switch (column->type) {
    case PL_COLUMN_I64:
        return H5Tcopy(H5T_STD_I64LE);
    case PL_COLUMN_F64:
        return H5Tcopy(H5T_IEEE_F64LE);
    case PL_COLUMN_KIND:
        return type_kind();
    default:
        return type_text(text_size);
    }
}

/* Creation lists without time stamps; orders tracked, so object headers carry checksums
 * and members come back in the order written. */
static hid_t list_object(hid_t class)
{
    hid_t list = H5Pcreate(class);
    H5Pset_obj_track_times(list, 0);
    H5Pset_attr_creation_order(list, H5P_CRT_ORDER_TRACKED | H5P_CRT_ORDER_INDEXED);
    H5Pset_attr_phase_change(list, COMPACT, 0);
    if (class != H5P_DATASET_CREATE) {
        H5Pset_link_creation_order(list, H5P_CRT_ORDER_TRACKED | H5P_CRT_ORDER_INDEXED);
        H5Pset_link_phase_change(list, COMPACT, 0);
    }
    return list;
}

struct pl_h5 *pl_h5_create(void)
{
    H5Eset_auto2(H5E_DEFAULT, NULL, NULL); /* we report errors ourselves */
    hid_t creation = list_object(H5P_FILE_CREATE), access = H5Pcreate(H5P_FILE_ACCESS);
    H5Pset_istore_k(creation, 4); /* most columns are one chunk */
    H5Pset_libver_bounds(access, H5F_LIBVER_EARLIEST, H5F_LIBVER_V18);
    H5Pset_fapl_core(access, 1 << 20, 0); /* never reaches the disk */
    hid_t file = H5Fcreate("pipelag-trace", H5F_ACC_TRUNC, creation, access);
    H5Pclose(creation);
    H5Pclose(access);
    if (file < 0) return NULL;
    struct pl_h5 *h5 = PL_NEW(1, struct pl_h5);
    h5->file = file;
    return h5;
}

int pl_h5_image(struct pl_h5 *h5, void **bytes, size_t *n)
{
    if (H5Fflush(h5->file, H5F_SCOPE_LOCAL) < 0) return -1;
    ssize_t size = H5Fget_file_image(h5->file, NULL, 0);
    if (size <= 0) return -1;
    *bytes = pl_alloc((size_t)size, 1);
    *n = (size_t)size;
    if (H5Fget_file_image(h5->file, *bytes, *n) == size) return 0;
    free(*bytes);
    *bytes = NULL;
    return -1;
}

void pl_h5_close(struct pl_h5 *h5)
{
    if (!h5) return;
    H5Fclose(h5->file);
    free(h5);
}

/* Writing */

int pl_h5_put_group(struct pl_h5 *h5, const char *path, int links)
{
    hid_t list = list_object(H5P_GROUP_CREATE);
    if (links > COMPACT) H5Pset_link_phase_change(list, 0, 0);
    hid_t group = H5Gcreate2(h5->file, path, H5P_DEFAULT, list, H5P_DEFAULT);
    H5Pclose(list);
    return group < 0 ? -1 : H5Gclose(group);
}

static int put_attr(struct pl_h5 *h5, const char *path, const char *name, hid_t type,
                    hid_t space, const void *value)
{
    int status = -1;
    hid_t object = H5Oopen(h5->file, path, H5P_DEFAULT);
    hid_t attr = object < 0
                     ? -1
                     : H5Acreate2(object, name, type, space, H5P_DEFAULT, H5P_DEFAULT);
    if (attr >= 0) {
        status = H5Awrite(attr, type, value) < 0 ? -1 : 0;
        H5Aclose(attr);
    }
    if (object >= 0) H5Oclose(object);
    H5Sclose(space);
    return status;
}

int pl_h5_put_text(struct pl_h5 *h5, const char *path, const char *name,
                   const char *value)
{
    hid_t type = type_text(strlen(value));
    int status = put_attr(h5, path, name, type, H5Screate(H5S_SCALAR), value);
    H5Tclose(type);
    return status;
}

int pl_h5_put_real(struct pl_h5 *h5, const char *path, const char *name, double value)
{
    return put_attr(h5, path, name, H5T_IEEE_F64LE, H5Screate(H5S_SCALAR), &value);
}

int pl_h5_put_ints(struct pl_h5 *h5, const char *path, const char *name, int n,
                   const int64_t *values)
{
    hsize_t dims = (hsize_t)n;
    return put_attr(h5, path, name, H5T_STD_I64LE,
                    n == 1 ? H5Screate(H5S_SCALAR) : H5Screate_simple(1, &dims, NULL),
                    values);
}

/* One-dimensional, compressed and with a checksum; columns can grow. */
static int put_cells(struct pl_h5 *h5, const char *path, hid_t type, int64_t n,
                     const void *cells)
{
    hsize_t dims = (hsize_t)n, max = H5S_UNLIMITED;
    hsize_t chunk = n < 1 ? 1 : n < CHUNK ? (hsize_t)n : CHUNK;
    hid_t list = list_object(H5P_DATASET_CREATE),
          space = H5Screate_simple(1, &dims, &max);
    H5Pset_chunk(list, 1, &chunk);
    H5Pset_shuffle(list);
    H5Pset_deflate(list, 4);
    H5Pset_fletcher32(list);
    int status = -1;
    hid_t set = H5Dcreate2(h5->file, path, type, space, H5P_DEFAULT, list, H5P_DEFAULT);
    if (set >= 0) {
        status = H5Dwrite(set, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, cells) < 0 ? -1 : 0;
        H5Dclose(set);
    }
    H5Sclose(space);
    H5Pclose(list);
    H5Tclose(type);
    return status;
}

int pl_h5_put_long_text(struct pl_h5 *h5, const char *path, const char *value)
{
    return put_cells(h5, path, type_text(strlen(value)), 1, value);
}

int pl_h5_put_column(struct pl_h5 *h5, const char *path, const struct pl_column *column,
                     int64_t n, size_t cell, const void *cells)
{
    int status = put_cells(h5, path, column_type(column, cell), n, cells);
    if (!status && *column->units)
        status = pl_h5_put_text(h5, path, "units", column->units);
    if (!status) status = pl_h5_put_text(h5, path, "long_name", column->long_name);
    return status;
}

/* Reading */

int pl_h5_open(const char *path, struct pl_h5 **out)
{
    struct stat st;
    H5Eset_auto2(H5E_DEFAULT, NULL, NULL);
    if (!stat(path, &st) && !S_ISREG(st.st_mode) && !S_ISDIR(st.st_mode))
        return pl_fail(PL_EINPUT, "%s: not a regular file, expected a trace", path);
    FILE *f = fopen(path, "rb");
    if (!f) return pl_fail(PL_EINPUT, "%s: %s", path, strerror(errno));
    char byte;
    size_t n = fread(&byte, 1, 1, f);
    int error = ferror(f) ? errno : 0;
    fclose(f);
    if (error) return pl_fail(PL_EINPUT, "%s: %s", path, strerror(error));
    if (!n) return pl_fail(PL_EINPUT, "%s: empty file, expected a trace", path);
    if (H5Fis_hdf5(path) <= 0)
        return pl_fail(PL_EINPUT, "%s: not an HDF5 file, expected a trace", path);
    hid_t file = H5Fopen(path, H5F_ACC_RDONLY, H5P_DEFAULT);
    if (file < 0)
        return pl_fail(PL_EINPUT, "%s: HDF5 file is truncated or damaged", path);
    *out = PL_NEW(1, struct pl_h5);
    (*out)->file = file;
    return 0;
}

static enum pl_h5_kind kind_of(hid_t object)
{
    H5I_type_t type = H5Iget_type(object);
    return type == H5I_GROUP     ? PL_H5_GROUP
           : type == H5I_DATASET ? PL_H5_COLUMN
                                 : PL_H5_OTHER;
}

int pl_h5_links(struct pl_h5 *h5, const char *path,
                int (*each)(void *context, const char *name, enum pl_h5_kind kind),
                void *context)
{
    hid_t group = H5Gopen2(h5->file, path, H5P_DEFAULT);
    H5G_info_t info;
    if (group < 0 || H5Gget_info(group, &info) < 0) {
        if (group >= 0) H5Gclose(group);
        return -1;
    }
    int status = 0;
    for (hsize_t i = 0; !status && i < info.nlinks; i++) {
        char name[512];
        /* a group made by others may not track the order */
        ssize_t n = H5Lget_name_by_idx(group, ".", H5_INDEX_CRT_ORDER, H5_ITER_INC, i,
                                       name, sizeof name, H5P_DEFAULT);
        if (n < 0)
            n = H5Lget_name_by_idx(group, ".", H5_INDEX_NAME, H5_ITER_INC, i, name,
                                   sizeof name, H5P_DEFAULT);
        if (n < 0) {
            status = -1;
        } else if ((size_t)n < sizeof name) {
            hid_t object = H5Oopen(group, name, H5P_DEFAULT);
            status = each(context, name, object < 0 ? PL_H5_BROKEN : kind_of(object));
            if (object >= 0) H5Oclose(object);
        }
    }
    H5Gclose(group);
    return status;
}

static int visit_attr(hid_t attr, const char *name, hid_t type, int64_t n,
                      int (*each)(void *context, const struct pl_h5_attr *attr),
                      void *context)
{
    struct pl_h5_attr value = {.name = name};
    double real;
    int64_t ints[MAX_ATTR_INTS];
    char *text = NULL;
    if (H5Tget_class(type) == H5T_STRING && H5Tis_variable_str(type) == 0 && n == 1 &&
        H5Tget_size(type) <= MAX_TEXT) {
        value.text = text = pl_alloc(H5Tget_size(type) + 1, 1);
        if (H5Aread(attr, type, text) < 0) value.text = NULL;
    } else if (H5Tequal(type, H5T_IEEE_F64LE) > 0 && n == 1) {
        if (H5Aread(attr, H5T_NATIVE_DOUBLE, &real) >= 0) value.real = &real;
    } else if (H5Tequal(type, H5T_STD_I64LE) > 0 && n >= 1 && n <= MAX_ATTR_INTS) {
        if (H5Aread(attr, H5T_NATIVE_INT64, ints) >= 0) value.ints = ints;
        value.n = (int)n;
    }
    int status = value.text || value.real || value.ints ? each(context, &value) : 0;
    free(text);
    return status;
}

int pl_h5_attrs(struct pl_h5 *h5, const char *path,
                int (*each)(void *context, const struct pl_h5_attr *attr),
                void *context)
{
    hid_t object = H5Oopen(h5->file, path, H5P_DEFAULT);
    if (object < 0) return -1;
    int status = 0, n = H5Aget_num_attrs(object);
    for (int i = 0; !status && i < n; i++) {
        char name[512];
        hid_t attr = H5Aopen_by_idx(object, ".", H5_INDEX_CRT_ORDER, H5_ITER_INC,
                                    (hsize_t)i, H5P_DEFAULT, H5P_DEFAULT);
        if (attr < 0)
            attr = H5Aopen_by_idx(object, ".", H5_INDEX_NAME, H5_ITER_INC, (hsize_t)i,
                                  H5P_DEFAULT, H5P_DEFAULT);
        hid_t type = attr < 0 ? -1 : H5Aget_type(attr);
        hid_t space = attr < 0 ? -1 : H5Aget_space(attr);
        if (type < 0 || space < 0 || H5Aget_name(attr, sizeof name, name) < 0)
            status = -1;
        else
            status = visit_attr(attr, name, type, H5Sget_simple_extent_npoints(space),
                                each, context);
        if (space >= 0) H5Sclose(space);
        if (type >= 0) H5Tclose(type);
        if (attr >= 0) H5Aclose(attr);
    }
    H5Oclose(object);
    return n < 0 ? -1 : status;
}

/* Bytes on disk that n cells cannot exceed: a claimed length far beyond the file is
 * damage, not a reason to allocate. Deflate gains at most 1032 times. */
static bool plausible(struct pl_h5 *h5, hssize_t n, size_t cell)
{
    hsize_t bytes = 0;
    H5Fget_filesize(h5->file, &bytes);
    return n >= 0 && cell >= 1 && cell <= MAX_TEXT &&
           (double)n * (double)cell <= 1100.0 * (double)bytes;
}

/* Every chunk is there and went through every filter; otherwise HDF5 would read zeros,
 * or bytes without a checksum, from a damaged index. */
static bool chunks_whole(struct pl_h5 *h5, hid_t set, hsize_t n)
{
    hid_t list = H5Dget_create_plist(set);
    hsize_t chunk = 0, file = 0;
    H5Fget_filesize(h5->file, &file);
    bool whole = list >= 0;
    /* HDF5 1.10.8 takes the checksum off a chunk that is shorter than it, and crashes
     */
    hsize_t least = whole && H5Pget_nfilters(list) > 0 ? 5 : 1;
    if (whole && H5Pget_layout(list) == H5D_CHUNKED)
        whole = H5Pget_chunk(list, 1, &chunk) == 1 && chunk > 0;
    for (hsize_t at = 0; whole && chunk && at < n; at += chunk) {
        unsigned skipped = 0;
        haddr_t address = 0;
        hsize_t bytes = 0, found = 0; /* by walking the index; as a read finds it */
        whole = H5Dget_chunk_storage_size(set, &at, &found) >= 0 &&
                H5Dget_chunk_info_by_coord(set, &at, &skipped, &address, &bytes) >= 0 &&
                !skipped && bytes == found && bytes >= least && bytes <= file &&
                address <= file - bytes;
    }
    if (list >= 0) H5Pclose(list);
    return whole;
}

static const char *get_column(struct pl_h5 *h5, hid_t set,
                              const struct pl_column *column, int64_t *n, size_t *cell,
                              void **cells)
{
    const char *why = NULL;
    hid_t type = H5Dget_type(set), space = H5Dget_space(set);
    size_t size = type < 0 ? 0 : H5Tget_size(type);
    hid_t want = column_type(column, size);
    bool text = column->type == PL_COLUMN_TEXT && type >= 0 &&
                H5Tget_class(type) == H5T_STRING && H5Tis_variable_str(type) == 0;
    hssize_t count = space < 0 ? -1 : H5Sget_simple_extent_npoints(space);
    if (!text && (type < 0 || H5Tequal(type, want) <= 0)) {
        why = "wrong type";
    } else if (space < 0 || H5Sget_simple_extent_ndims(space) != 1) {
        why = "not one-dimensional";
    } else if (!plausible(h5, count, size)) {
        why = "damaged: more rows than the file can hold";
    } else if (!chunks_whole(h5, set, (hsize_t)count)) {
        why = "damaged: its index of chunks is wrong";
    } else {
        *n = count;
        *cell = size;
        *cells = pl_alloc((size_t)count, size);
        if (H5Dread(set, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, *cells) < 0) {
            free(*cells);
            why = "damaged: checksum or filter failed";
        }
    }
    H5Tclose(want);
    if (type >= 0) H5Tclose(type);
    if (space >= 0) H5Sclose(space);
    return why;
}

int pl_h5_get_column(struct pl_h5 *h5, const char *path, const struct pl_column *column,
                     int64_t *n, size_t *cell, void **cells, const char **why)
{
    hid_t set = H5Dopen2(h5->file, path, H5P_DEFAULT);
    *why = set < 0 ? "cannot open" : get_column(h5, set, column, n, cell, cells);
    if (set >= 0) H5Dclose(set);
    return *why ? -1 : 0;
}
