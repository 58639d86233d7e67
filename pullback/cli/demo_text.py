"""The text that `pullback demo` learns to spell: a short story, written for it.

Small enough that a model of a hundred thousand weights gets somewhere in half a minute, plain enough (few letters
beyond the lower case) that what it then writes can be recognised.
"""

__all__ = ["TEXT"]

TEXT = """\
The keeper of the lighthouse counted everything. She counted the steps of the tower, and there were two hundred and
twelve. She counted the ships that passed in the night, and wrote each of them into a book with a blue cover. When the
fog came and there were no ships to count, she counted the seconds between one wave and the next.

One morning a boy came up the path with a basket of bread. He asked her why she counted the waves. She said that the sea
was a machine, and that every machine can be understood by a person who is patient. The boy looked at the sea for a long
time. Then he said that it did not look like a machine to him. It looked like a hill that could not make up its mind.

The keeper laughed, and gave him the book with the blue cover. Guess, she said, how long the next wave will take. The boy
guessed nine seconds, and the wave took seven. She told him that he was wrong by two, and that he should remember it.
He guessed eight, and the wave took seven again. He was wrong by one. He guessed seven, and the wave took six, and he was
angry at the sea for changing its mind.

That is how it is done, said the keeper. You guess, and the sea answers. You look at how wrong you were, and you move
your guess a little way toward the answer. If you move it too far, you will run after every wave and never be right. If
you move it too little, you will be old before you are right. So you move it a little, and then a little less.

The boy came back the next day, and the day after that. He brought bread, and he guessed, and he was wrong. But each day
he was wrong by less. By the end of the summer he could stand on the rocks with his eyes closed and lift his hand at the
moment when the water fell. The fishermen thought that it was a trick. The keeper knew that it was only a long list of
mistakes, and that each of them had been of use.

In the winter there was a storm. The lamp went out at midnight, and the stairs of the tower were dark. There was one ship
on the water, and it could not see the rocks. The keeper climbed the two hundred and twelve steps, and she did not need a
light, because she had counted them. The boy stood at the bottom of the tower and listened to the sea. He called out the
waves to her, one after the other, and between the waves she carried the oil across the open gallery, where the wind was
strong enough to take a person away.

The lamp was lit again before one in the morning. The ship turned slowly and went around the rocks. In the book with the
blue cover there is a line for that night. It says: one ship, and thirty waves, and the boy was wrong about none of them.

When the keeper was old, the boy kept the lighthouse. He counted the steps, and there were two hundred and twelve. He
counted the ships. When children came up the path with bread and asked him why he counted, he gave them the book with the
blue cover, and told them to guess.
"""
