DRAW = lambda rng: (
    lambda names, pairs, i: (
        {name: [names[b if a == j else a] for a, b in pairs if j in (a, b)] for j, name in enumerate(names)},
        names[i],
    )
)(*(lambda n: (["Al", "Bo", "Cy", "Di", "Ed", "Fay"][:n], links(rng, n, n + 1), rng.randrange(n)))(rng.randint(4, 6)))
EDGES = [({"Al": []}, "Al"), ({"Al": ["Bo"], "Bo": ["Al"]}, "Bo"), ({"A": ["B"], "B": ["A", "C"], "C": ["B"]}, "B")]

"""A network of friends is the dictionary `friends` that maps each name to the list of the names of the friends of that
person; friendship is mutual, and every name that occurs is a key. Define `friends_of_friends(friends, name)`: the
alphabetical list of the friends of friends of `name` who are neither friends of `name` nor `name`."""
EXAMPLE = ({"Al": ["Bo"], "Bo": ["Al", "Cy"], "Cy": ["Bo"]}, "Al"), ["Cy"]

def friends_of_friends(friends, name):
    near = set(friends[name])
    second = {other for friend in near for other in friends[friend]} - near - {name}
    # wrong: return sorted(second | near)
    return sorted(second)

"""A network of friends is the dictionary `friends` that maps each name to the list of the names of the friends of that
person; friendship is mutual, and every name that occurs is a key. Define `suggest_friend(friends, name)`: among the
friends of friends who are neither friends of `name` nor `name`, the one who shares most friends with `name`, the
alphabetically first if several tie, `None` if there are none."""
EXAMPLE = ({"Al": ["Bo"], "Bo": ["Al", "Cy"], "Cy": ["Bo"]}, "Al"), "Cy"
EDGES = [({"A": ["B", "C"], "B": ["A", "D", "X"], "C": ["A", "X"], "D": ["B"], "X": ["B", "C"]}, "A")]

def suggest_friend(friends, name):
    near = set(friends[name])
    second = {other for friend in near for other in friends[friend]} - near - {name}
    # wrong: return min(second, default=None)
    return min(second, key=lambda other: (-len(near & set(friends[other])), other), default=None)

"""A network of friends is the dictionary `friends` that maps each name to the list of the names of the friends of that
person; friendship is mutual, and every name that occurs is a key. Define `count_triangles_at(friends, name)`: the
number of pairs of friends of `name` who are friends of each other."""
EXAMPLE = ({"Al": ["Bo", "Cy"], "Bo": ["Al", "Cy"], "Cy": ["Bo", "Al"]}, "Al"), 1

def count_triangles_at(friends, name):
    near = set(friends[name])
    # wrong: return sum(b in friends[a] for a in near for b in near)
    return sum(a < b and b in friends[a] for a in near for b in near)
