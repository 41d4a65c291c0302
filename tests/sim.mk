# tests of sim/ and of the commands sim and cluster
test_programs += tests/test_sim_time tests/test_sim_delay tests/test_sim_check \
  tests/test_sim_memory tests/test_sim_jitter tests/test_sim_async tests/test_sim_unit \
  tests/test_sim_segments tests/test_sim_property tests/test_sim_static \
  tests/test_sim_stream tests/test_sim_zb tests/test_sim_plan tests/test_sim_bidir \
  tests/test_sim_custom tests/test_sim_custom_bad \
  tests/test_sim_links tests/test_sim_measured tests/test_sim_contention tests/test_sim_free
test_scripts += tests/cli_sim.sh tests/cli_links.sh tests/cli_roofline.sh tests/cli_schedule.sh \
  tests/golden/sim-1f1b.test tests/golden/sim-2bw.test tests/golden/sim-gpipe.test \
  tests/golden/sim-interleaved.test tests/golden/sim-pipedream.test \
  tests/golden/sim-zb-v.test

test_programs += tests/test_cluster tests/test_place tests/test_cluster_import tests/test_collective
test_scripts += tests/cli_cluster.sh
EXTRA_DIST += tests/topo/dgx1-v100.txt tests/topo/dgx1-v100.xml \
  tests/topo/h100-nvswitch.txt tests/topo/h100-nvswitch.xml tests/topo/l40s-pcie.txt \
  tests/topo/l40s-pcie.xml
