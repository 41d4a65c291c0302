# Presets that are built into the program (base/builtin.h). Files of one kind stand together.
PL_PRESETS =
PL_PRESETS += data/models/smollm.yaml
PL_PRESETS += data/models/gpt-2.yaml
PL_PRESETS += data/models/gpt-3.yaml
PL_PRESETS += data/models/megatron.yaml
PL_PRESETS += data/models/llama-3.yaml
PL_PRESETS += data/models/qwen.yaml
PL_PRESETS += data/models/mixtral.yaml
PL_PRESETS += data/models/olmoe.yaml
PL_PRESETS += data/models/deepseek.yaml
PL_PRESETS += data/clusters/nvlink.yaml
PL_PRESETS += data/clusters/pcie.yaml
EXTRA_DIST += $(PL_PRESETS) tools/embed.awk

base/builtin_data.c: tools/embed.awk $(PL_PRESETS)
	$(AM_V_GEN)$(MKDIR_P) base && out=`pwd`/$@ && cd $(srcdir) && \
	  $(AWK) -f tools/embed.awk $(PL_PRESETS) >$$out.tmp && mv $$out.tmp $$out
BUILT_SOURCES += base/builtin_data.c
CLEANFILES += base/builtin_data.c base/builtin_data.c.tmp
