# expected: exception load_error
import tkinter
window = tkinter.Tk()
import turtle
turtle.done()
