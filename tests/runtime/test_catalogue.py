"""Which test covers which line of the runtime's test catalogue (issue 7), and that each of them is there.

Files are of this directory, without ``test_`` and ``.py``.  Every property of concurrency runs under a thousand random
schedules or more, but where every schedule has its own case (``SCHEDULES``: fifo, rr, lifo, adversarial, random and
threads).
"""

from __future__ import annotations

import ast
from functools import cache
from pathlib import Path

import pytest

TABLE = """
FIFO
  operations append their own number, 10,000 of them, every schedule   streams.test_ten_thousand_operations_of_a_stream_happen_in_order
  the same under 1,000 seeds; tile iterations in order                 stream_properties.test_each_stream_keeps_its_order_and_the_tiles_of_a_launch_theirs
  threads on one stream: each one's order kept, launches contiguous    streams.test_threads_that_share_a_stream_keep_their_own_order_and_their_launches_whole
NO CROSS ORDER
  both orders of two streams are seen                                  streams.test_both_orders_of_streams_that_nothing_connects_are_seen
  all orders are seen, disjoint data is never flagged                  stream_properties.test_streams_without_a_common_byte_finish_in_many_orders_and_are_never_flagged
  shared data is flagged, exactly as brute force says                  schedules.test_the_race_detector_agrees_with_brute_force_when_waits_are_left_out
EVENTS
  record and wait                                                      events.test_a_consumer_that_waits_sees_what_its_producer_wrote
  wait before any record orders nothing                                events.test_an_event_that_was_never_recorded_counts_as_reached
  re-record after wait                                                 events.test_a_wait_binds_to_the_record_that_stood_when_it_was_enqueued
  re-record, two waiters, 1,000 seeds                                  stream_properties.test_whoever_waits_sees_the_record_that_stood_then_and_at_least_that_much
  a later record holds nobody back, 1,000 seeds                        stream_properties.test_a_later_record_holds_nobody_back_who_waited_for_the_earlier_one
  two waiters                                                          events.test_one_event_holds_two_waiters_and_serves_a_thousand_times
  one event recorded 1,000 times                                       stream_properties.test_one_event_is_recorded_a_thousand_times
  chain of 64 streams                                                  events.test_a_chain_over_all_streams_runs_from_its_start_to_its_end
  self-wait                                                            events.test_a_stream_may_wait_for_its_own_event
  cross-device                                                         streams.test_streams_of_two_devices_do_not_wait_for_each_other
  elapsed time is monotone                                             events.test_the_time_between_events_never_runs_backwards
  destroyed while pending                                              events.test_an_event_may_be_dropped_while_it_is_waited_for
  diamond over streams, 1,000 seeds; each edge is needed               schedules.test_a_diamond_has_one_result_and_each_of_its_edges_is_needed
SYNCHRONIZE
  only what was there before the call                                  streams.test_synchronize_leaves_what_another_thread_adds_meanwhile
  ends while another thread keeps enqueueing                           stream_properties.test_a_synchronisation_ends_while_another_thread_goes_on_enqueueing
  idempotent, and complete under 1,000 seeds; device too               stream_properties.test_a_synchronised_stream_has_done_what_it_had_and_the_device_what_all_had
  empty stream                                                         streams.test_a_stream_without_work_is_synchronized_at_once
  device covers all streams                                            streams.test_the_device_waits_for_all_its_streams
  timeout                                                              streams.test_a_synchronisation_whose_time_is_over_leaves_the_work_to_go_on
  timeout under threads                                                streams.test_a_synchronisation_in_threads_gives_up_when_its_time_is_over
  from a host function: refused, no deadlock                           streams.test_a_host_function_that_waits_or_enqueues_is_refused_not_stuck
  other threads go on                                                  streams.test_another_thread_goes_on_while_one_waits
QUERY
  false, then true                                                     streams.test_query_says_no_until_the_work_is_done_and_always_ends
  never blocks                                                         stream_properties.test_a_query_answers_while_another_thread_is_inside_of_a_host_function
  after an error it raises                                             stream_errors.test_a_stopped_stream_says_the_same_until_it_is_cleared_and_takes_nothing
POOL
  ids, wrap at 33, priorities, getter, equality and hash               streams.test_streams_come_from_two_pools_in_turn
  wrap of the high pool                                                stream_properties.test_the_pool_of_high_priority_begins_again_behind_its_last
  thread-local current stream, contexts restored on exception          streams.test_the_current_stream_is_the_thread_s_innermost_one
ERRORS
  a refused launch changes nothing                                     stream_errors.test_a_refused_launch_leaves_queue_and_memory_as_they_were
  host function's exception; other streams unaffected                  stream_errors.test_what_a_host_function_raises_stops_its_stream_and_no_other
  exactly what comes after is skipped, 1,000 programs                  stream_properties.test_what_fails_skips_exactly_what_comes_after_it_and_all_else_computes
  same error on each call, launch after it raises, clear_error         stream_errors.test_a_stopped_stream_says_the_same_until_it_is_cleared_and_takes_nothing
  waiter of a poisoned event; later errors chained                     stream_errors.test_who_waits_for_an_event_behind_a_failure_fails_too
  error in a tile names launch, step and tile                          stream_errors.test_an_error_in_a_tile_names_launch_step_and_tile_and_skips_the_rest
  resources of what was skipped                                        stream_errors.test_what_was_skipped_holds_no_memory
  and its host buffers                                                 stream_properties.test_a_skipped_operation_gives_its_host_buffer_back_too
  the first error wins; cleared streams work, 1,000 seeds              stream_properties.test_of_two_errors_of_a_stream_the_first_stays_and_a_cleared_stream_works_again
  several streams' errors                                              stream_errors.test_of_several_failed_streams_the_lowest_is_raised_with_the_others_noted
  fatal, then reset                                                    stream_errors.test_an_error_of_the_device_itself_stops_everything_until_it_is_reset
LIFETIME
  tensor dropped right after its launch                                tensors.test_a_dropped_tensor_is_copied_before_its_memory_goes
  freed: waits, and is used again only after retirement                stream_errors.test_memory_freed_right_after_a_launch_serves_it_and_is_then_used_again
  the same, 1,000 seeds                                                stream_properties.test_memory_freed_behind_a_launch_is_nobody_else_s_before_it_is_done
  cross-stream use without record_stream is flagged                    stream_properties.test_memory_freed_under_a_host_function_that_does_not_hold_it_is_flagged_and_a_recorded_stream_is_not
  record_stream                                                        tensors.test_a_recorded_stream_keeps_the_memory_of_a_tensor_that_is_freed
  plan dropped in flight                                               stream_errors.test_a_job_may_be_dropped_while_its_launch_is_under_way
  nothing kept by what is over                                         stream_errors.test_an_operation_keeps_nothing_when_it_is_over
CORRECTION
  one plan on two streams, distinct tensors, 1,000 seeds               schedules.test_one_plan_on_two_streams_is_right_where_each_launch_has_its_correction_to_itself
  with one shared buffer it is found and goes wrong                    schedules.test_one_plan_on_two_streams_with_one_correction_buffer_is_found_and_goes_wrong
  tiles with 1, 2 and 4 slots give the same bytes                      schedules.test_tiles_give_the_same_bytes_with_one_two_or_four_correction_slots
ALLOCATOR
  zero size                                                            allocator.test_zero_bytes_have_a_handle_without_memory
  rounding to sticks                                                   allocator.test_sizes_are_whole_sticks
  100 x 2,048 freed in any order in a region that fits exactly         allocator.test_blocks_that_are_free_again_make_one_block_whatever_the_order
  best fit, fragmentation                                              allocator.test_the_smallest_hole_that_fits_is_taken_and_of_equal_ones_the_lowest
  out of memory                                                        allocator.test_the_message_of_exhausted_memory_has_what_was_asked_and_what_is_there
  generations                                                          allocator.test_a_handle_is_stale_after_free_even_when_its_place_is_used_again
  program and tensor regions                                           allocator.test_programs_and_tensors_have_regions_of_their_own
  determinism                                                          allocator.test_the_same_requests_give_the_same_addresses_and_handles
  machine: regions covered without overlap, aligned, joined            allocator_machine.blocks_cover_every_region_without_overlap_and_no_two_free_ones_touch
  machine: statistics are the model's                                  allocator_machine.statistics_are_those_of_the_model
  machine: everything keeps place and bytes                            allocator_machine.everything_held_keeps_its_place_and_its_bytes
THREAD SAFETY
  8 threads allocate and free                                          stream_threads.test_the_allocator_keeps_its_regions_whole_under_eight_threads
  8 threads copy, launch, free                                         stream_threads.test_eight_threads_with_streams_of_their_own_get_their_own_results
  8 threads on one stream                                              stream_threads.test_eight_threads_on_one_stream_lose_no_operation
  threads that wait for each other's events                            stream_threads.test_threads_that_wait_for_each_other_s_events_come_to_an_end
  workers really run beside each other                                 stream_threads.test_the_workers_really_execute_beside_each_other
LEAKS
  handles, bytes, pins, operations, threads, files after every test    conftest.open_device
  after 1,000 programs on one device                                   stream_properties.test_nothing_is_left_of_a_thousand_programs_on_one_device
  closed with leftovers: a warning with lines                          streams.test_a_device_closed_with_memory_in_use_names_the_lines_that_took_it
STARVATION
  every schedule                                                       streams.test_a_normal_stream_is_served_within_the_bound_while_another_is_never_empty
  many starving streams                                                streams.test_every_one_of_many_starving_streams_is_served_within_the_bound_and_their_number
  1,000 seeds                                                          stream_properties.test_a_normal_stream_is_served_within_the_bound
METAMORPHIC
  independent launches in any order                                    schedules.test_independent_launches_may_be_enqueued_in_any_order
  one stream cut in two with events                                    schedules.test_a_stream_cut_in_two_with_events_computes_the_same
  look-ahead 1 and 8, blocking, captured                               schedules.test_what_a_program_computes_does_not_depend_on
  1,000 programs, every schedule, no race                              schedules.test_programs_whose_conflicts_are_ordered_compute_the_same_under_every_schedule_and_no_race_is_found
  profiled or not                                                      profile.test_a_profile_changes_neither_results_nor_times
CRASH SAFETY
  killed while copying to a file                                       crash_safety.test_a_killed_copy_to_a_file_leaves_no_part_of_it_at_its_place
MATRIX
  {write} x {read} x {synchronisation} x {priorities}, three hazards   race_detector.test_every_pair_of_operations_is_silent_and_right_where_ordered_and_found_where_not
"""  # noqa: E501 -- one line of the catalogue each

LINES = [line.rsplit(maxsplit=1) for line in TABLE.splitlines() if line.startswith("  ")]


@cache
def names_in(file: str) -> frozenset[str]:
    name = file if file == "conftest" else f"test_{file}"
    tree = ast.parse(Path(__file__).with_name(f"{name}.py").read_text())
    return frozenset(node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef))


@pytest.mark.parametrize(("line", "test"), LINES, ids=[test for _, test in LINES])
def test_every_line_of_the_catalogue_names_a_test_that_is_there(line: str, test: str) -> None:
    file, _, function = test.partition(".")
    assert function in names_in(file), line.strip()
