// elf: loads a relocatable x86-64 object into this process, without a linker and without LLVM.
//
//   one mapping   [ code | stubs ][ constants | addresses ][ data | zeros ]
//                   r-x             r--                      rw-
//
// `stubs` are jumps for calls whose target is out of reach, `addresses` is the global offset table. Objects with 32-bit
// absolute addresses (small code model without PIC) are mapped in the low 2 GiB. Every table of the object is checked
// before it is used. What is not needed to run is not mapped: debug sections and unwind tables; nothing is registered
// with debuggers or unwinders. Thread-local storage, constructors, indirect functions and symbols of no known address
// are refused by name.
#include "image/image_impl.h"

#include <elf.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

enum { PAGE = 4096, STUB = 8, MAX_SECTIONS = 1 << 20 };
#define MAX_LOADED (1ull << 30)

typedef enum Region { REGION_CODE, REGION_CONST, REGION_DATA, REGIONS } Region;

typedef struct Export {
  const char *name;
  const void *address;
} Export;

struct ImageCode {
  Arena arena;
  char *map;
  size_t bytes;
  Export *exports; // by name
  uint32_t nexports;
};

typedef struct Loader {
  const unsigned char *obj;
  size_t n;
  const Elf64_Shdr *sh;
  uint32_t nsh;
  const Elf64_Sym *sym;
  uint32_t nsym;
  const char *str; // names of symbols; ends in NUL
  size_t nstr;
  const ImageSymbol *imports;
  uint32_t nimports;
  Arena *arena;
  // by section
  uint64_t *offset; // in the mapping; UINT64_MAX: not loaded
  // by symbol
  uint64_t *value;       // address
  bool *known;           // has an address
  uint32_t *slot, *stub; // 1 + index of its address slot and its stub, 0: none
  uint32_t nslots, nstubs;
  uint64_t stubs, slots;       // offsets in the mapping
  uint64_t start[REGIONS + 1]; // offsets in the mapping
  bool low;                    // has 32-bit absolute addresses
  char *map;
  Status status;
  char text[256]; // what is wrong
} Loader;

static bool fail(Loader *l, Status s, const char *fmt, ...) DT_PRINTF(3, 4);
static bool fail(Loader *l, Status s, const char *fmt, ...) {
  va_list ap;
  va_start(ap, fmt);
  vsnprintf(l->text, sizeof l->text, fmt, ap);
  va_end(ap);
  l->status = s;
  return false;
}

// ---- tables ------------------------------------------------------------------------------------
static bool inside(const Loader *l, uint64_t at, uint64_t bytes) { return at <= l->n && bytes <= l->n - at; }

static bool read_header(Loader *l) {
  const Elf64_Ehdr *h = (const Elf64_Ehdr *)l->obj;
  if (l->n < sizeof *h || memcmp(h->e_ident, ELFMAG, SELFMAG) != 0)
    return fail(l, ST_CORRUPT, "it is not an ELF object");
  if (h->e_ident[EI_CLASS] != ELFCLASS64 || h->e_ident[EI_DATA] != ELFDATA2LSB || h->e_machine != EM_X86_64 ||
      h->e_type != ET_REL)
    return fail(l, ST_UNSUPPORTED, "it is not a relocatable object for x86-64");
  if (h->e_shentsize != sizeof(Elf64_Shdr) || h->e_shoff % 8 || !inside(l, h->e_shoff, sizeof(Elf64_Shdr)))
    return fail(l, ST_CORRUPT, "its section table is out of place");
  l->sh = (const Elf64_Shdr *)(l->obj + h->e_shoff);
  const uint64_t nsh = h->e_shnum ? h->e_shnum : l->sh[0].sh_size;
  if (nsh > MAX_SECTIONS || !inside(l, h->e_shoff, nsh * sizeof(Elf64_Shdr)))
    return fail(l, ST_CORRUPT, "its section table is cut off");
  l->nsh = (uint32_t)nsh;
  for (uint32_t i = 0; i < l->nsh; i++) {
    const Elf64_Shdr *s = &l->sh[i];
    if (s->sh_type != SHT_NOBITS && s->sh_type != SHT_NULL && !inside(l, s->sh_offset, s->sh_size))
      return fail(l, ST_CORRUPT, "section %u is cut off", i);
  }
  return true;
}

static bool read_symbols(Loader *l) {
  for (uint32_t i = 0; i < l->nsh; i++) {
    const Elf64_Shdr *s = &l->sh[i];
    if (s->sh_type == SHT_SYMTAB_SHNDX) return fail(l, ST_UNSUPPORTED, "it has too many sections");
    if (s->sh_type != SHT_SYMTAB) continue;
    if (l->sym) return fail(l, ST_CORRUPT, "it has two symbol tables");
    if (s->sh_entsize != sizeof(Elf64_Sym) || s->sh_offset % 8 ||
        s->sh_size / sizeof(Elf64_Sym) > UINT32_MAX || s->sh_link >= l->nsh ||
        l->sh[s->sh_link].sh_type != SHT_STRTAB)
      return fail(l, ST_CORRUPT, "its symbol table is damaged");
    const Elf64_Shdr *names = &l->sh[s->sh_link];
    l->sym = (const Elf64_Sym *)(l->obj + s->sh_offset);
    l->nsym = (uint32_t)(s->sh_size / sizeof(Elf64_Sym));
    l->str = (const char *)(l->obj + names->sh_offset);
    l->nstr = names->sh_size;
    if (!l->nstr || l->str[l->nstr - 1]) return fail(l, ST_CORRUPT, "its names do not end");
    for (uint32_t k = 0; k < l->nsym; k++) {
      if (l->sym[k].st_name >= l->nstr) return fail(l, ST_CORRUPT, "symbol %u has no name", k);
    }
  }
  return true;
}

static const char *symbol_name(const Loader *l, uint32_t k) {
  const Elf64_Sym *s = &l->sym[k];
  return s->st_name                                 ? l->str + s->st_name
         : ELF64_ST_TYPE(s->st_info) == STT_SECTION ? "(a section)"
                                                    : "(no name)";
}

// ---- relocations, one by one -------------------------------------------------------------------
typedef bool EachReloc(Loader *l, const Elf64_Rela *r, uint32_t sym, uint32_t type, const Elf64_Shdr *in,
                       uint64_t base);

static bool each_reloc(Loader *l, EachReloc *each) {
  for (uint32_t i = 0; i < l->nsh; i++) {
    const Elf64_Shdr *s = &l->sh[i];
    if (s->sh_type != SHT_RELA && s->sh_type != SHT_REL) continue;
    if (s->sh_info >= l->nsh) return fail(l, ST_CORRUPT, "relocations belong to no section");
    if (l->offset[s->sh_info] == UINT64_MAX) continue;
    if (s->sh_type == SHT_REL || s->sh_entsize != sizeof(Elf64_Rela) || s->sh_offset % 8)
      return fail(l, ST_CORRUPT, "its relocations are damaged");
    const Elf64_Rela *r = (const Elf64_Rela *)(l->obj + s->sh_offset);
    for (uint64_t k = 0; k < s->sh_size / sizeof *r; k++) {
      const uint64_t sym = ELF64_R_SYM(r[k].r_info);
      if (sym >= l->nsym) return fail(l, ST_CORRUPT, "a relocation names no symbol");
      if (!each(l, &r[k], (uint32_t)sym, ELF64_R_TYPE(r[k].r_info), &l->sh[s->sh_info],
                l->offset[s->sh_info]))
        return false;
    }
  }
  return true;
}

static bool survey_reloc(Loader *l, const Elf64_Rela *r, uint32_t sym, uint32_t type, const Elf64_Shdr *in,
                         uint64_t base) {
  (void)r, (void)in, (void)base;
  switch (type) {
  case R_X86_64_32:
  case R_X86_64_32S: l->low = true; break;
  case R_X86_64_GOTPCREL:
  case R_X86_64_GOTPCRELX:
  case R_X86_64_REX_GOTPCRELX:
  case R_X86_64_GOTPCREL64:
  case R_X86_64_GOT64:
    if (!l->slot[sym]) l->slot[sym] = ++l->nslots;
    break;
  case R_X86_64_PLT32:
  case R_X86_64_PLTOFF64: // only what lies outside may be out of reach
    if (l->sym[sym].st_shndx != SHN_UNDEF) break;
    if (!l->slot[sym]) l->slot[sym] = ++l->nslots;
    if (!l->stub[sym]) l->stub[sym] = ++l->nstubs;
    break;
  default: break;
  }
  return true;
}

static bool store_signed(Loader *l, char *at, int64_t v, unsigned bytes, uint32_t sym) {
  const int64_t top = bytes == 8 ? 0 : v >> (8 * bytes - 1);
  if (bytes < 8 && top != 0 && top != -1)
    return fail(l, ST_UNSUPPORTED, "'%.100s' is out of reach of a %u-bit relocation", symbol_name(l, sym),
                bytes * 8);
  memcpy(at, &v, bytes);
  return true;
}

static unsigned reloc_bytes(uint32_t type) {
  switch (type) {
  case R_X86_64_8:
  case R_X86_64_PC8: return 1;
  case R_X86_64_16:
  case R_X86_64_PC16: return 2;
  case R_X86_64_64:
  case R_X86_64_PC64:
  case R_X86_64_GOTOFF64:
  case R_X86_64_GOTPC64:
  case R_X86_64_GOT64:
  case R_X86_64_GOTPCREL64:
  case R_X86_64_PLTOFF64: return 8;
  default: return 4;
  }
}

static bool apply_reloc(Loader *l, const Elf64_Rela *r, uint32_t sym, uint32_t type, const Elf64_Shdr *in,
                        uint64_t base) {
  if (type == R_X86_64_NONE) return true;
  const unsigned bytes = reloc_bytes(type);
  if (r->r_offset > in->sh_size || bytes > in->sh_size - r->r_offset)
    return fail(l, ST_CORRUPT, "a relocation lies outside its section");
  if (!l->known[sym])
    return fail(l, ST_NOT_FOUND, "it needs '%.100s', which is not there", symbol_name(l, sym));
  char *at = l->map + base + r->r_offset;
  // unsigned arithmetic: wraps as the relocations mean it
  const uint64_t P = (uint64_t)(uintptr_t)at, S = l->value[sym], A = (uint64_t)r->r_addend;
  const uint64_t G = (uint64_t)(uintptr_t)l->map + l->slots; // the table's address
  const uint64_t slot = G + 8 * (uint64_t)(l->slot[sym] - 1);
  const uint64_t stub = (uint64_t)(uintptr_t)l->map + l->stubs + STUB * (uint64_t)(l->stub[sym] - 1);
  uint64_t v;
  switch (type) {
  case R_X86_64_64: v = S + A; break;
  case R_X86_64_32:
    v = S + A;
    if (v >> 32) return fail(l, ST_UNSUPPORTED, "'%.100s' is not in the low 4 GiB", symbol_name(l, sym));
    memcpy(at, &v, 4);
    return true;
  case R_X86_64_8:
  case R_X86_64_16:
  case R_X86_64_32S: v = S + A; break;
  case R_X86_64_PC8:
  case R_X86_64_PC16:
  case R_X86_64_PC32:
  case R_X86_64_PC64: v = S + A - P; break;
  case R_X86_64_PLT32:
    v = S + A - P;
    if ((int64_t)v != (int32_t)v && l->stub[sym]) v = stub + A - P;
    break;
  case R_X86_64_PLTOFF64: v = (l->stub[sym] ? stub : S) + A - G; break;
  case R_X86_64_GOTPCREL:
  case R_X86_64_GOTPCRELX:
  case R_X86_64_REX_GOTPCRELX:
  case R_X86_64_GOTPCREL64: v = slot + A - P; break;
  case R_X86_64_GOT64: v = slot + A - G; break;
  case R_X86_64_GOTOFF64: v = S + A - G; break;
  case R_X86_64_GOTPC32:
  case R_X86_64_GOTPC64: v = G + A - P; break;
  default:
    return fail(l, ST_UNSUPPORTED, "relocation %u on '%.100s' is not supported", type, symbol_name(l, sym));
  }
  return store_signed(l, at, (int64_t)v, bytes, sym);
}

// ---- layout ------------------------------------------------------------------------------------
static bool wanted(const Elf64_Shdr *s) {
  return (s->sh_flags & SHF_ALLOC) && s->sh_size && s->sh_type != SHT_X86_64_UNWIND && s->sh_type != SHT_NOTE;
}

static Region region_of(const Elf64_Shdr *s) {
  return s->sh_flags & SHF_EXECINSTR ? REGION_CODE : s->sh_flags & SHF_WRITE ? REGION_DATA : REGION_CONST;
}

static const char *section_name(const Loader *l, const Elf64_Shdr *s) {
  const Elf64_Ehdr *h = (const Elf64_Ehdr *)l->obj;
  if (h->e_shstrndx >= l->nsh) return "";
  const Elf64_Shdr *names = &l->sh[h->e_shstrndx];
  if (names->sh_type != SHT_STRTAB || s->sh_name >= names->sh_size) return "";
  const char *t = (const char *)(l->obj + names->sh_offset);
  return t[names->sh_size - 1] ? "" : t + s->sh_name;
}

static bool place(Loader *l, uint64_t *at, uint64_t bytes, uint64_t align) {
  if (align == 0) align = 1;
  if (!bits_pow2(align) || align > PAGE)
    return fail(l, ST_UNSUPPORTED, "a section is aligned to %llu bytes", (unsigned long long)align);
  *at = bits_round_up(*at, align);
  if (bytes > MAX_LOADED || *at > MAX_LOADED - bytes)
    return fail(l, ST_LIMIT, "it takes more than 1 GiB in memory");
  return true;
}

// Gives every section, common symbol, stub and slot its offset in the mapping.
static bool lay_out(Loader *l) {
  l->offset = arena_array(l->arena, uint64_t, l->nsh);
  for (uint32_t i = 0; i < l->nsh; i++) {
    const Elf64_Shdr *s = &l->sh[i];
    l->offset[i] = UINT64_MAX;
    if (!wanted(s) || strcmp(section_name(l, s), ".eh_frame") == 0) continue;
    if (s->sh_flags & SHF_TLS) return fail(l, ST_UNSUPPORTED, "it has thread-local storage");
    if (s->sh_type == SHT_INIT_ARRAY || s->sh_type == SHT_FINI_ARRAY || s->sh_type == SHT_PREINIT_ARRAY)
      return fail(l, ST_UNSUPPORTED, "it has constructors or destructors");
    if (s->sh_type != SHT_PROGBITS && s->sh_type != SHT_NOBITS)
      return fail(l, ST_UNSUPPORTED, "section '%.60s' is of the unknown type %u", section_name(l, s),
                  s->sh_type);
    if ((s->sh_flags & SHF_EXECINSTR) && (s->sh_flags & SHF_WRITE))
      return fail(l, ST_UNSUPPORTED, "section '%.60s' is both writable and executable", section_name(l, s));
    l->offset[i] = 0; // loaded; placed below
  }
  l->slot = arena_array(l->arena, uint32_t, l->nsym);
  l->stub = arena_array(l->arena, uint32_t, l->nsym);
  if (!each_reloc(l, survey_reloc)) return false;
  uint64_t at = 0;
  for (Region g = 0; g < REGIONS; g++) {
    at = bits_round_up(at, PAGE);
    l->start[g] = at;
    for (uint32_t i = 0; i < l->nsh; i++) {
      const Elf64_Shdr *s = &l->sh[i];
      if (l->offset[i] == UINT64_MAX || region_of(s) != g) continue;
      if (!place(l, &at, s->sh_size, s->sh_addralign)) return false;
      l->offset[i] = at;
      at += s->sh_size;
    }
    const uint64_t extra = g == REGION_CODE    ? (uint64_t)STUB * l->nstubs
                           : g == REGION_CONST ? 8ull * l->nslots
                                               : 0;
    if (!place(l, &at, extra, 16)) return false;
    if (g == REGION_CODE) l->stubs = at;
    if (g == REGION_CONST) l->slots = at;
    at += extra;
  }
  l->value = arena_array(l->arena, uint64_t, l->nsym);
  l->known = arena_array(l->arena, bool, l->nsym);
  for (uint32_t k = 0; k < l->nsym; k++) {
    const Elf64_Sym *s = &l->sym[k];
    if (s->st_shndx != SHN_COMMON) continue; // st_value is its alignment
    if (!place(l, &at, s->st_size, s->st_value)) return false;
    l->value[k] = at;
    at += s->st_size;
  }
  l->start[REGIONS] = bits_round_up(at, PAGE);
  return true;
}

// ---- symbols -----------------------------------------------------------------------------------
static const ImageSymbol *import(const Loader *l, const char *name) {
  for (uint32_t i = 0; i < l->nimports; i++) {
    if (strcmp(l->imports[i].name, name) == 0) return &l->imports[i];
  }
  return NULL;
}

static bool resolve(Loader *l, uint32_t k) {
  const Elf64_Sym *s = &l->sym[k];
  const unsigned type = ELF64_ST_TYPE(s->st_info);
  const uint64_t map = (uint64_t)(uintptr_t)l->map;
  l->known[k] = true;
  switch (s->st_shndx) {
  case SHN_UNDEF: {
    const char *name = l->str + s->st_name;
    if (!*name) { // the null symbol: relocations that need none
      l->value[k] = 0;
    } else if (strcmp(name, "_GLOBAL_OFFSET_TABLE_") == 0) {
      l->value[k] = map + l->slots;
    } else {
      const ImageSymbol *i = import(l, name);
      l->known[k] = i || ELF64_ST_BIND(s->st_info) == STB_WEAK;
      l->value[k] = i ? (uint64_t)(uintptr_t)i->address : 0;
    }
    return true;
  }
  case SHN_ABS: l->value[k] = s->st_value; return true;
  case SHN_COMMON: l->value[k] += map; return true;
  default: break;
  }
  if (s->st_shndx >= l->nsh)
    return fail(l, ST_CORRUPT, "symbol '%.100s' is in no section", symbol_name(l, k));
  if (type == STT_TLS || type == STT_GNU_IFUNC)
    return fail(l, ST_UNSUPPORTED, "symbol '%.100s' is thread-local or an indirect function",
                symbol_name(l, k));
  const uint64_t base = l->offset[s->st_shndx];
  l->known[k] = base != UINT64_MAX;
  if (!l->known[k]) return true; // in a section that is not loaded
  if (s->st_value > l->sh[s->st_shndx].sh_size)
    return fail(l, ST_CORRUPT, "symbol '%.100s' lies outside its section", symbol_name(l, k));
  l->value[k] = map + base + s->st_value;
  return true;
}

// jmp *slot(%rip), and two bytes that trap
static void make_stub(Loader *l, uint32_t sym) {
  char *at = l->map + l->stubs + (size_t)STUB * (l->stub[sym] - 1);
  const char *slot = l->map + l->slots + (size_t)8 * (l->slot[sym] - 1);
  const int32_t reach = (int32_t)(slot - (at + 6));
  memcpy(at, "\xff\x25", 2);
  memcpy(at + 2, &reach, 4);
  memcpy(at + 6, "\x0f\x0b", 2);
}

static bool link(Loader *l) {
  for (uint32_t k = 0; k < l->nsym; k++) {
    if (!resolve(l, k)) return false;
    if (l->slot[k]) memcpy(l->map + l->slots + (size_t)8 * (l->slot[k] - 1), &l->value[k], 8);
    if (l->stub[k]) make_stub(l, k);
  }
  for (uint32_t i = 0; i < l->nsh; i++) {
    if (l->offset[i] != UINT64_MAX && l->sh[i].sh_type == SHT_PROGBITS)
      memcpy(l->map + l->offset[i], l->obj + l->sh[i].sh_offset, l->sh[i].sh_size);
  }
  return each_reloc(l, apply_reloc);
}

static bool protect(Loader *l) {
  static const int access[REGIONS] = {PROT_READ | PROT_EXEC, PROT_READ, PROT_READ | PROT_WRITE};
  for (Region g = 0; g < REGIONS; g++) {
    const size_t bytes = l->start[g + 1] - l->start[g];
    if (bytes && mprotect(l->map + l->start[g], bytes, access[g]) != 0)
      return fail(l, ST_IO, "the system does not let its pages be protected: %s", os_error());
  }
  return true;
}

static int by_name(const void *a, const void *b) {
  return strcmp(((const Export *)a)->name, ((const Export *)b)->name);
}

static void list_exports(const Loader *l, ImageCode *c) {
  c->exports = arena_array(&c->arena, Export, l->nsym);
  for (uint32_t k = 0; k < l->nsym; k++) {
    const Elf64_Sym *s = &l->sym[k];
    if (s->st_shndx == SHN_UNDEF || ELF64_ST_BIND(s->st_info) == STB_LOCAL || !l->known[k]) continue;
    c->exports[c->nexports++] =
        (Export){arena_strdup(&c->arena, symbol_name(l, k)), (const void *)(uintptr_t)l->value[k]};
  }
  qsort(c->exports, c->nexports, sizeof *c->exports, by_name);
}

// ---- the three public functions ----------------------------------------------------------------
// Scratch comes from the code's own arena.
static bool load(Loader *l, ImageCode *c) {
  if (!read_header(l) || !read_symbols(l) || !lay_out(l)) return false;
  const uint64_t bytes = l->start[REGIONS];
  if (!bytes) return fail(l, ST_CORRUPT, "it holds neither code nor data");
  void *m = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | (l->low ? MAP_32BIT : 0),
                 -1, 0);
  if (m == MAP_FAILED)
    return fail(l, ST_NO_MEMORY, "%llu bytes for it cannot be mapped: %s", (unsigned long long)bytes,
                os_error());
  l->map = c->map = m;
  c->bytes = bytes;
  if (!link(l) || !protect(l)) return false;
  list_exports(l, c);
  return true;
}

// Memory that ends is a failure like others.
static bool guarded_load(Loader *l, ImageCode *c, const void *object) {
  Escape esc;
  arena_init(&c->arena, 0, &esc);
  if (ESCAPE_TRY(&esc)) return fail(l, esc.status, "%s", esc.message);
  l->arena = &c->arena;
  // the tables are read in place, so they need the alignment that a mapped file would have
  l->obj = (uintptr_t)object % 8 ? arena_copy(&c->arena, object, l->n) : object;
  return load(l, c);
}

Status image_code_load(const void *object, size_t n, const ImageSymbol *symbols, uint32_t nsymbols,
                       ImageCode **out, Diags *d) {
  Loader l = {.n = n, .imports = symbols, .nimports = nsymbols};
  ImageCode *c = calloc(1, sizeof *c);
  const bool ok = c ? guarded_load(&l, c, object) : fail(&l, ST_NO_MEMORY, "memory ended");
  *out = ok ? c : NULL;
  if (ok) {
    c->arena.escape = NULL; // nothing is allocated from here on
    return ST_OK;
  }
  image_code_free(c);
  diag(d, DIAG_ERROR, LOC_NONE, "the object code cannot be loaded: %s", l.text);
  return l.status;
}

const void *image_code_symbol(const ImageCode *c, const char *name) {
  const Export key = {name, NULL};
  const Export *e = c->nexports ? bsearch(&key, c->exports, c->nexports, sizeof key, by_name) : NULL;
  return e ? e->address : NULL;
}

void image_code_free(ImageCode *c) {
  if (!c) return;
  if (c->map) munmap(c->map, c->bytes);
  arena_free(&c->arena);
  free(c);
}
