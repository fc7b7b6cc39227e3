"""The order in which tasks of several projects take threads."""

from stoker.conductor.worker import turns
from stoker.conductor.worker.turns import Intake, Turns
from stoker.db.ids import TaskId, TraversalId

A, B = TraversalId("trv-a"), TraversalId("trv-b")


def ids(*numbers: int) -> list[TaskId]:
    return [TaskId(number) for number in numbers]


def taken(intake: Intake, most: int, **rooms: int) -> list[int]:
    return [task_id for _, task_id in intake.take(most, lambda owner: rooms.get(owner, 100))]


def test_owners_take_turns_and_items_of_one_keep_their_order() -> None:
    queue: Turns[int] = Turns()
    for item in range(4):
        queue.add("hog", item)
    queue.add("small", 10)
    assert [item for _, item in queue.take(3, lambda owner: 9)] == [0, 10, 1]
    assert [item for _, item in queue.take(9, lambda owner: 9)] == [2, 3]
    assert len(queue) == 0


def test_who_has_no_room_is_passed_over_and_keeps_the_turn() -> None:
    queue: Turns[int] = Turns()
    for owner in ("hog", "small", "third"):
        queue.add(owner, 1)
        queue.add(owner, 2)
    rooms = {"hog": 0, "small": 1, "third": 9}
    assert queue.take(9, rooms.__getitem__) == [("small", 1), ("third", 1), ("third", 2)]
    assert queue.has_turn(lambda owner: int(owner == "small"))
    assert not queue.has_turn(lambda owner: 0)
    assert queue.take(1, lambda owner: 9) == [("hog", 1)]


def test_to_take_looks_at_no_more_owners_than_it_takes_items_of() -> None:
    queue: Turns[int] = Turns()
    for number in range(1000):
        queue.add(f"p{number}", number)
    asked: list[str] = []
    queue.take(3, lambda owner: asked.append(owner) or 1)  # type: ignore[func-returns-value]
    assert asked == ["p0", "p1", "p2"]


def test_items_of_all_owners_are_listed_and_those_of_one_counted() -> None:
    queue: Turns[int] = Turns()
    for item, owner in enumerate(("hog", "hog", "small")):
        queue.add(owner, item)
    assert sorted(queue.items()) == [0, 1, 2]
    assert [queue.count_of(owner) for owner in ("hog", "small", "third")] == [2, 1, 0]
    queue.clear()
    assert (len(queue), queue.items()) == (0, [])


def test_traversals_of_one_project_have_one_turn_once_a_claim_shows_whose_they_are() -> None:
    intake = Intake()
    intake.enqueue({A: ids(1, 2, 3), B: ids(4, 5)})
    intake.learn(A, "hog")
    intake.learn(B, "hog")
    intake.enqueue({TraversalId("trv-c"): ids(6)})
    assert intake.has_turn(lambda owner: int(owner == "hog"))
    assert not intake.has_turn(lambda owner: int(owner == "other"))
    assert taken(intake, 2) == [1, 6]
    assert taken(intake, 9, hog=2) == [2, 3]
    intake.enqueue({A: ids(7)})
    assert taken(intake, 9) == [4, 5, 7]


def test_a_hint_that_comes_twice_counts_once() -> None:
    intake = Intake()
    intake.enqueue({A: ids(1, 1)})
    intake.learn(A, "p")
    assert intake.enqueue({A: ids(1), B: ids(1)}) == 0
    assert (len(intake), taken(intake, 9)) == (1, [1])
    intake.enqueue({A: ids(1)})
    assert taken(intake, 9) == [1]


def test_one_project_fills_half_of_the_intake_at_most() -> None:
    intake = Intake(most=4)
    assert intake.enqueue({A: ids(1, 2, 3)}) == 1
    assert intake.enqueue({B: ids(4)}) == 0
    assert intake.enqueue({B: ids(5), TraversalId("trv-c"): ids(6)}) == 1, "the third one finds it full"
    intake.clear()
    assert (len(intake), taken(intake, 9)) == (0, [])


def test_projects_of_old_traversals_are_forgotten() -> None:
    intake = Intake()
    for number in range(turns.MOST_REMEMBERED + 1):
        intake.learn(TraversalId(f"t{number}"), "p")
    intake.enqueue({TraversalId("t0"): ids(1), TraversalId("t1"): ids(2)})
    assert intake.take(2, lambda owner: 1) == [("t0", 1), ("p", 2)]
    for traversal in ("t1", "t"):
        intake.learn(TraversalId(traversal), "p")
    intake.enqueue({TraversalId("t1"): ids(3), TraversalId("t2"): ids(4)})
    assert intake.take(2, lambda owner: 1) == [("p", 3), ("t2", 4)], "one that is claimed again is young"
